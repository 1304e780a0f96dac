"""Tensor methods whose arguments differ from those of the function of the same name."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, boundary, checks, ops
from mixtrain.dtype import DType, bool_, float32, int8, int16, int32, is_float, uint8
from mixtrain.ops import joining
from mixtrain.ops.inputs import as_floats, axes_of, axis_of, is_number, rank_of, sizes_of, tensor, tensor_dtype, unpack
from mixtrain.typing import DTypeLike, Tensor, TensorLike

_Axes = int | Sequence[int] | None
_MISSING: Any = object()


def _first(*values: Any, default: Any) -> Any:
    """Return the value that was passed, whichever of its aliases was used."""
    return next((value for value in values if value is not _MISSING), default)


def with_aliases(function: Callable[..., Any], **aliases: str) -> Callable[..., Any]:
    """Return a function whose keyword arguments have aliases.

    `function`: The function. `aliases`: Keyword arguments by their aliases.

    Example:
        >>> with_aliases(lambda x, axis: (x, axis), dim="axis")(1, dim=2)
        (1, 2)
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{aliases.get(name, name): value for name, value in kwargs.items()})

    return call


def add(self: TensorLike, other: TensorLike, *, alpha: float = 1) -> Tensor:
    """self + alpha * other."""
    return ops.add(self, other if alpha == 1 else ops.mul(other, alpha))


def sub(self: TensorLike, other: TensorLike, *, alpha: float = 1) -> Tensor:
    """self - alpha * other."""
    return ops.subtract(self, other, alpha=alpha)


def round(self: TensorLike, decimals: int = 0) -> Tensor:
    """`ops.round`, with decimals by position too."""
    return ops.round(self, decimals=decimals)


def mean(
    self: TensorLike, axis: _Axes = None, keep_dims: bool = False, *, dim: Any = _MISSING, keepdim: Any = _MISSING,
    keepdims: Any = _MISSING, dtype: DTypeLike | None = None,
) -> Tensor:
    """`ops.mean`; `dim` is an alias of `axis`, `keepdim` and `keepdims` of `keep_dims`."""
    x = tensor("Tensor.mean", self)
    x = x if dtype is None else keras.ops.cast(x, dtype)
    result = ops.mean(x, _first(dim, default=axis), _first(keepdim, keepdims, default=keep_dims))
    return result if is_float(x.dtype) else keras.ops.cast(result, x.dtype)


def sum(
    self: TensorLike, axis: _Axes = None, dtype: DTypeLike | bool | None = None, keepdims: bool = False,
    initial: TensorLike | None = None, *, dim: Any = _MISSING, keepdim: Any = _MISSING,
) -> Tensor:
    """`ops.sum`; a bool passed as `dtype` is `keepdims`."""
    if isinstance(dtype, bool):
        keepdims, dtype = dtype, None
    total = ops.sum(self, _first(dim, default=axis), _first(keepdim, default=keepdims), dtype=dtype)
    return total if initial is None else ops.add(total, initial)


def prod(
    self: TensorLike, axis: _Axes = None, keep_dims: bool = False, dtype: DTypeLike | None = None, *,
    dim: Any = _MISSING, keepdim: Any = _MISSING,
) -> Tensor:
    """`ops.prod`; `dim` is an alias of `axis`, `keepdim` of `keep_dims`."""
    return ops.prod(self, _first(dim, default=axis), _first(keepdim, default=keep_dims), dtype)


def all(
    self: TensorLike, axis: _Axes = None, keep_dims: bool = False, *, dim: Any = _MISSING, keepdim: Any = _MISSING,
    out: None = None,
) -> Tensor:
    """`ops.all`; `dim` is an alias of `axis`, `keepdim` of `keep_dims`; `np.all` passes `out`."""
    return ops.all(self, _first(dim, default=axis), _first(keepdim, default=keep_dims))


def any(
    self: TensorLike, axis: _Axes = None, keep_dims: bool = False, *, dim: Any = _MISSING, keepdim: Any = _MISSING,
    out: None = None,
) -> Tensor:
    """`ops.any`; `dim` is an alias of `axis`, `keepdim` of `keep_dims`; `np.any` passes `out`."""
    return ops.any(self, _first(dim, default=axis), _first(keepdim, default=keep_dims))


def var(
    self: TensorLike, axis: _Axes = None, ddof: int | bool = 0, keepdims: bool = False, *, dim: Any = _MISSING,
    correction: Any = _MISSING, keepdim: Any = _MISSING,
) -> Tensor:
    """`ops.var`; `dim`, `correction` and `keepdim` are aliases (`dim` alone means correction 1)."""
    ddof = _first(correction, default=ddof if dim is _MISSING else 1)
    return ops.var(self, _first(dim, default=axis), ddof, _first(keepdim, default=keepdims))


def std(
    self: TensorLike, axis: _Axes = None, ddof: int | bool = 0, keepdims: bool = False, *, dim: Any = _MISSING,
    correction: Any = _MISSING, keepdim: Any = _MISSING,
) -> Tensor:
    """`ops.std`, with the aliases of `var`."""
    ddof = _first(correction, default=ddof if dim is _MISSING else 1)
    return ops.std(self, _first(dim, default=axis), ddof, _first(keepdim, default=keepdims))


def _extreme(
    name: str, self: TensorLike, args: tuple[Any, ...], options: dict[str, Any]
) -> Tensor | tuple[Tensor, Tensor]:
    """Return values for ``max()`` and ``max(axis=1)``, values and indices for ``max(1)`` and ``max(dim=1)``."""
    if args and isinstance(args[0], (tuple, list)):
        args, options = args[1:], {"axis": args[0], **options}
    if 0 in tuple(tensor(f"Tensor.{name}", self).shape) and not args and options.get("axis") is None:
        raise checks.fail_value(f"Tensor.{name}", "the tensor must have elements", tuple(self.shape), "x.size > 0")
    # `keepdims` is a word of the form that returns values alone, `keepdim` of the other.
    by_position = bool(args) and args[0] is not None and "keepdims" not in options
    # As in MindSpore, where compiled code takes the form that returns values alone unless `keepdim` is written.
    by_position = by_position and ("keepdim" in options or boundary.shares_memory())
    with_indices = options.pop("return_indices", False) or by_position or "dim" in options
    for alias, option in (("dim", "axis"), ("keepdim", "keepdims")):
        if alias in options:
            options[option] = options.pop(alias)
    if options.get("where") is True:
        options.pop("where")
    if not args and options.get("axis") is None:
        options.pop("keepdims", None)  # As in MindSpore, where there is no axis to keep.
    if with_indices:
        return getattr(ops, name)(self, *args, **options)
    return getattr(ops, "amax" if name == "max" else "amin")(self, *args, **options)


def max(self: TensorLike, *args: Any, **options: Any) -> Tensor | tuple[Tensor, Tensor]:
    """`ops.amax` for ``max()`` and ``max(axis=1)``; values and indices for ``max(1)`` and ``max(dim=1)``."""
    return _extreme("max", self, args, options)


def min(self: TensorLike, *args: Any, **options: Any) -> Tensor | tuple[Tensor, Tensor]:
    """`ops.amin` for ``min()`` and ``min(axis=1)``; values and indices for ``min(1)`` and ``min(dim=1)``."""
    return _extreme("min", self, args, options)


def argmax(
    self: TensorLike, axis: int | None = None, keepdims: bool = False, *, dim: Any = _MISSING, keepdim: Any = _MISSING
) -> Tensor:
    """`ops.argmax`; `dim` is an alias of `axis`, `keepdim` of `keepdims`."""
    return ops.argmax(self, _first(dim, default=axis), _first(keepdim, default=keepdims))


def cumsum(self: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None, *, dim: Any = _MISSING) -> Tensor:
    """`ops.cumsum`, of the flattened tensor by default; `dim` is an alias of `axis`."""
    axis = _first(dim, default=axis)
    if dtype is None and tensor_dtype(tensor("Tensor.cumsum", self)) in (bool_, int8, int16, uint8):
        dtype = int32  # As in MindSpore, where the function keeps the dtype.
    return ops.cumsum(ops.ravel(self) if axis is None else self, 0 if axis is None else axis, dtype)


def clip(self: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """`ops.clip`; an integer tensor between floats becomes float32."""
    x = tensor("Tensor.clip", self)
    if not is_float(x.dtype) and (isinstance(min, float) or isinstance(max, float)):
        x = keras.ops.cast(x, float32)
    return ops.clip(x, min, max)


def sort(
    self: TensorLike, axis: int = -1, descending: bool = False, *, dim: Any = _MISSING, stable: bool = False
) -> tuple[Tensor, Tensor]:
    """`ops.sort`; `dim` is an alias of `axis`."""
    return ops.sort(self, _first(dim, default=axis), descending)


def diag(self: TensorLike) -> Tensor:
    """A matrix with a vector on its diagonal; for other tensors, a tensor with each axis twice."""
    x = tensor("Tensor.diag", self)
    return keras.ops.reshape(keras.ops.diagflat(x), (*x.shape, *x.shape))


def flatten(self: TensorLike, *args: Any, order: str = "C", start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """`ops.flatten`, by default from the first axis: ``flatten("F")``, ``flatten(1)``, ``flatten(1, 2)``."""
    if args and isinstance(args[0], str):
        order, args = args[0], args[1:]
    if args:
        start_dim = args[0]
    if len(args) > 1:
        end_dim = args[1]
    return ops.flatten(self, order, start_dim=start_dim, end_dim=end_dim)


def transpose(self: TensorLike, *axes: Any) -> Tensor:
    """Reverse the axes; swap two of them, given as ints; or permute all, given as a tuple or one by one."""
    if len(axes) == 2 and is_number(axes[0]):
        return ops.swapaxes(self, *axes)
    x = tensor("Tensor.transpose", self)
    axes = () if axes == (None,) else axes  # As NumPy's function passes it.
    return ops.transpose(x, unpack(axes) if axes else tuple(reversed(range(rank_of(x)))))


def squeeze(self: TensorLike, *axis: Any, dim: Any = _MISSING, **named: Any) -> Tensor:
    """`ops.squeeze`: ``squeeze()``, ``squeeze(0)``, ``squeeze((0, 2))``, ``squeeze(0, 2)``."""
    axis = _first(dim, default=named.get("axis", unpack(axis) if axis else None))
    if axis is None:
        return ops.squeeze(self)
    x = tensor("Tensor.squeeze", self)
    # Unlike the function, the method ignores axes that are longer than 1.
    axes = tuple(n for n in axes_of("Tensor.squeeze", axis, rank_of(x)) if x.shape[n] in (1, None))
    return ops.squeeze(x, axes) if axes else x


def split(
    self: TensorLike, split_size_or_sections: int | Sequence[int] | None = None, axis: int = 0, **named: Any
) -> tuple[Tensor, ...]:
    """`ops.split`; `split_size` and `dim` are aliases."""
    sections: Any = named.get("split_size", split_size_or_sections)
    return ops.split(self, sections, named.get("dim", axis))


def repeat(self: TensorLike, *repeats: Any, axis: Any = _MISSING) -> Tensor:
    """Tile the tensor along each axis; with `axis`, repeat each element next to itself."""
    if axis is not _MISSING:
        return ops.repeat_interleave(self, unpack(repeats), axis)
    return ops.tile(self, unpack(repeats))


def gather(self: TensorLike, *args: Any, batch_dims: int = 0, **named: Any) -> Tensor:
    """Gather slices with ``gather(indices, axis)``, single elements with ``gather(dim, index)``."""
    if "dim" in named or "index" in named or (args and is_number(args[0])):
        dim, index = (*args, *(named[key] for key in ("dim", "index") if key in named))
        return ops.gather_elements(self, dim, index)
    indices, axis, *rest = (*args, *(named[key] for key in ("input_indices", "axis") if key in named))
    return ops.gather(self, indices, axis, rest[0] if rest else batch_dims)


def select(self: TensorLike, *args: Any, **named: Any) -> Tensor:
    """Choose elementwise with ``select(condition, y)``, take one slice with ``select(dim, index)``."""
    names = ("condition", "y") if "condition" in named or "y" in named else ("dim", "axis", "index")
    first, second = (*args, *(named[key] for key in names if key in named))
    if not is_number(first):
        return ops.where(first, self, second)
    x = tensor("Tensor.select", self)
    axis, index = axis_of("Tensor.select", first, rank_of(x), name="dim"), int(second)
    size = x.shape[axis]
    if size is not None and not -size <= index < size:
        raise checks.fail_value("Tensor.select", f"index must be from {-size} to {size - 1}", index, "index=0")
    return keras.ops.take(x, index, axis=axis)


def where(self: TensorLike, condition: TensorLike, y: TensorLike) -> Tensor:
    """self where the condition holds, else y."""
    return ops.where(condition, self, y)


def take(self: TensorLike, indices: TensorLike, axis: int | None = None, mode: str = "clip") -> Tensor:
    """Take elements of the flattened tensor, or slices along an axis; by default indices are clipped to the range."""
    checks.one_of("Tensor.take", "mode", mode, ("clip", "wrap", "raise"))
    x = ops.ravel(self) if axis is None else tensor("Tensor.take", self)
    axis = 0 if axis is None else axis_of("Tensor.take", axis, rank_of(x))
    indices = tensor("Tensor.take", indices)
    size = keras.ops.shape(x)[axis]
    if mode == "wrap":
        indices = keras.ops.mod(indices, size)
    elif mode == "clip":
        indices = keras.ops.clip(indices, 0, size - 1)
    else:
        _check_range("Tensor.take", indices, size)
    return keras.ops.take(x, indices, axis=axis)


def _check_range(where: str, indices: Tensor, size: Any) -> None:
    """Raise an IndexError for indices that are known to be out of range; JAX would read NaN or the smallest int."""
    known = backend.known_value(indices)
    if known is None or not isinstance(size, int) or not known.size:
        return
    wrong = known[(known < -size) | (known >= size)]
    if wrong.size:
        raise IndexError(
            f"{where}: expected indices from {-size} to {size - 1}; got {wrong.flat[0]}. Write mode=\"clip\"."
        )


def in_own_dtype(x: Tensor) -> np.ndarray:
    """Return the values as an array of the tensor's dtype, bfloat16 too, which `to_numpy` returns as float32."""
    return backend.to_numpy(x).astype(np.dtype(tensor_dtype(x).name), copy=False)


def view(self: TensorLike, *shape: Any) -> Tensor:
    """Reshape the tensor; or, for a dtype, reinterpret its bytes."""
    if len(shape) == 1 and isinstance(shape[0], DType):
        x = tensor("Tensor.view", self)
        return backend.to_tensor(in_own_dtype(x).view(np.dtype(shape[0])))
    return ops.reshape(self, unpack(shape))


def resize(self: TensorLike, *shape: Any) -> Tensor:
    """The elements in order, truncated or padded with zeros to another shape."""
    flat = ops.ravel(self)
    sizes = sizes_of("Tensor.resize", unpack(shape))
    new_size, size = math.prod(sizes), joining.known_size("Tensor.resize", flat, 0)
    if new_size > size:
        flat = keras.ops.pad(flat, [(0, new_size - size)])
    return keras.ops.reshape(flat[:new_size], sizes)


def softmax(self: TensorLike, axis: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis."""
    x = as_floats("Tensor.softmax", self)
    x = x if dtype is None else keras.ops.cast(x, dtype)
    return keras.ops.softmax(x, axis=axis_of("Tensor.softmax", axis, rank_of(x)))
