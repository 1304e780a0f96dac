"""`SlicingMethods`: methods that slice, split, rearrange and partially update tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import checks, ops
from mixtrain.common.generator import Generator
from mixtrain.common.method_forms import with_aliases
from mixtrain.dtype import float32
from mixtrain.ops import slicing
from mixtrain.ops.diagonals import fill_diagonal
from mixtrain.ops.indexing import flat_positions, get_item, scatter_flat, set_item
from mixtrain.ops.inputs import as_floats, is_number, tensor
from mixtrain.ops.operator import tensor_method
from mixtrain.typing import DTypeLike, Tensor, TensorLike

_Method = Callable[..., Any]


def _choose(self: TensorLike, choices: Sequence[TensorLike], mode: str = "clip") -> Tensor:
    checks.one_of("Tensor.choose", "mode", mode, ("clip", "wrap", "raise"))
    x = keras.ops.cast(tensor("Tensor.choose", self), "int32")
    stacked = keras.ops.stack([keras.ops.broadcast_to(tensor("Tensor.choose", choice), x.shape) for choice in choices])
    index = keras.ops.mod(x, len(choices)) if mode == "wrap" else keras.ops.clip(x, 0, len(choices) - 1)
    return keras.ops.take_along_axis(stacked, index[None], axis=0)[0]


def _index_add(self: TensorLike, *args: Any, alpha: float = 1, **named: Any) -> Tensor:
    """``index_add(dim, index, source, alpha=1)`` and ``index_add(indices, y, axis)``."""
    if not (args and is_number(args[0]) or "dim" in named):
        return ops.index_add(self, *args, **named)
    return _add_at(self, *args, alpha=alpha, **named)


def _add_at(self: TensorLike, dim: int, index: TensorLike, source: TensorLike, *, alpha: float = 1) -> Tensor:
    return slicing.add_slices("Tensor.index_add", self, dim, index, source, alpha)


def _index_put(self: TensorLike, indices: Sequence[TensorLike], values: TensorLike, accumulate: bool = False) -> Tensor:
    x = tensor("Tensor.index_put", self)
    if not accumulate:
        return set_item(x, tuple(indices), values)
    positions = get_item(flat_positions(x), tuple(indices))
    updates = keras.ops.broadcast_to(tensor("Tensor.index_put", values), positions.shape)
    return slicing.scatter_combine(x, positions, updates, "add")


def _scatter(reduction: str) -> _Method:
    """Return ``scatter_<reduction>(indices, updates)``, where each row of the indices selects one slice."""

    def compute(self: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
        x = tensor(f"Tensor.scatter_{reduction}", self)
        rows = keras.ops.moveaxis(tensor(f"Tensor.scatter_{reduction}", indices), -1, 0)
        positions = get_item(flat_positions(x), tuple(keras.ops.unstack(rows)))
        updates = tensor(f"Tensor.scatter_{reduction}", updates)
        return slicing.scatter_combine(x, positions, keras.ops.broadcast_to(updates, positions.shape), reduction)

    return compute


def _scatter_add(self: TensorLike, *args: Any, **named: Any) -> Tensor:
    """``scatter_add(indices, updates)``, or ``scatter_add(dim, index, src)`` along one axis."""
    if len(args) + len(named) == 3:
        dim, index, src = (*args, *(named[key] for key in ("dim", "index", "src") if key in named))
        return slicing.scatter_along(self, dim, index, src, "add")
    return _scatter("add")(self, *args, **named)


def _masked_scatter(self: TensorLike, mask: TensorLike, tensor_: TensorLike) -> Tensor:
    x = tensor("Tensor.masked_scatter", self)
    positions = ops.masked_select(flat_positions(x), mask)
    values = keras.ops.cast(keras.ops.reshape(tensor("Tensor.masked_scatter", tensor_), (-1,)), x.dtype)
    return scatter_flat(x, positions, values[: keras.ops.shape(positions)[0]])


def _stride(self: TensorLike, dim: int | None = None) -> Any:
    shape = tuple(self.shape)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return strides if dim is None else strides[dim]


def _new_full(
    self: TensorLike, size: int | Sequence[int], fill_value: float, *, dtype: DTypeLike | None = None
) -> Tensor:
    return ops.full(size, fill_value, dtype=dtype or ops.dtype(self))


def _uniform(self: TensorLike, from_: float = 0.0, to: float = 1.0, generator: Generator | None = None) -> Tensor:
    shape = ops.shape(self)
    if generator is None:
        sample = ops.uniform(shape, keras.ops.cast(from_, float32), keras.ops.cast(to, float32))
    else:
        sample = keras.random.uniform(shape, from_, to, "float32", generator.stream)
    return keras.ops.cast(sample, ops.dtype(self))


def _bernoulli(self: TensorLike, p: TensorLike | None = None, *, generator: Generator | None = None) -> Tensor:
    probability = self if p is None else p
    if generator is None:
        return ops.bernoulli(self, probability)
    sample = keras.random.uniform(ops.shape(self), dtype="float32", seed=generator.stream)
    wide = keras.ops.cast(as_floats("Tensor.bernoulli", probability), float32)
    return keras.ops.cast(sample < wide, ops.dtype(self))


class SlicingMethods:
    """Methods that slice, rearrange and update elements."""

    __slots__ = ()

    diagonal_scatter, diagflat, diff, fliplr = ops.diagonal_scatter, ops.diagflat, ops.diff, ops.fliplr
    flipud, rot90, reverse_sequence, index_fill = ops.flipud, ops.rot90, ops.reverse_sequence, ops.index_fill
    select_scatter, slice_scatter, unique_consecutive = ops.select_scatter, ops.slice_scatter, ops.unique_consecutive
    unsorted_segment_max, unsorted_segment_min = ops.unsorted_segment_max, ops.unsorted_segment_min
    unsorted_segment_prod, unique_with_pad = ops.unsorted_segment_prod, ops.unique_with_pad
    narrow, tensor_split = ops.narrow, ops.tensor_split
    diagonal = with_aliases(ops.diagonal, axis1="dim1", axis2="dim2")
    vsplit, hsplit, dsplit = ops.vsplit, ops.hsplit, ops.dsplit
    scatter_sub, scatter_mul, scatter_div, scatter_max, scatter_min = (
        tensor_method(f"scatter_{how}", _scatter(how)) for how in ("sub", "mul", "div", "max", "min")
    )
    fill_diagonal = tensor_method("fill_diagonal", fill_diagonal)
    fills = tensor_method("fills", lambda self, value: ops.full_like(self, value))
    reverse = tensor_method("reverse", ops.reverse)
    choose = tensor_method("choose", _choose)
    index_add = tensor_method("index_add", _index_add)
    index_put = tensor_method("index_put", _index_put)
    scatter = with_aliases(ops.scatter, dim="axis")
    scatter_add = tensor_method("scatter_add", _scatter_add)
    masked_scatter = tensor_method("masked_scatter", _masked_scatter)
    fold, unfold = ops.fold, ops.unfold
    new_full = tensor_method("new_full", _new_full)
    new_empty = tensor_method("new_empty", lambda self, size, *, dtype=None: ops.zeros(size, dtype or ops.dtype(self)))
    uniform = tensor_method("uniform", _uniform)
    bernoulli = tensor_method("bernoulli", _bernoulli)
    multinomial = tensor_method("multinomial", ops.multinomial)
    random_categorical = tensor_method("random_categorical", ops.random_categorical)
    byte = tensor_method("byte", lambda self: ops.cast(self, "uint8"))
    short = tensor_method("short", lambda self: ops.cast(self, "int16"))
    stride = _stride
    storage_offset = tensor_method("storage_offset", lambda self: 0)
