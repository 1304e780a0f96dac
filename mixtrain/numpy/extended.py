"""Functions of `keras.ops` with the arguments that MindSpore's `numpy` has besides, of backend tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import keras
import numpy as np

from mixtrain import ops
from mixtrain.boundary import to_backend_tensors
from mixtrain.dtype import as_dtype, bool_, int8, int16, uint8, uint16
from mixtrain.typing import DTypeLike, Tensor

_Axis = int | Sequence[int] | None
_Function = Callable[..., Tensor]


def _of_operator(function: _Function) -> _Function:
    """Return an operator of this package, with its gradient, as a function of backend tensors."""
    return lambda *arrays: to_backend_tensors(function(*arrays))


def _with_ddof(name: Literal["std", "var", "nanstd", "nanvar"]) -> _Function:
    """Return the deviation or variance with `ddof` fewer degrees of freedom."""
    function: _Function = getattr(keras.ops, name)

    def compute(x: Tensor, axis: _Axis = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
        value = function(x, axis, keepdims=keepdims)
        if not ddof:
            return value
        counted = keras.ops.logical_not(keras.ops.isnan(x)) if name.startswith("nan") else keras.ops.ones_like(x)
        count = keras.ops.sum(keras.ops.cast(counted, value.dtype), axis, keepdims=keepdims)
        ratio = count / (count - ddof)
        return value * (keras.ops.sqrt(ratio) if name.endswith("std") else ratio)

    return compute


def _count_nonzero(x: Tensor, axis: _Axis = None, keepdims: bool = False) -> Tensor:
    return keras.ops.sum(keras.ops.cast(keras.ops.not_equal(x, 0), "int32"), axis, keepdims=keepdims)


def _sum(a: Tensor, axis: _Axis = None, keepdims: bool = False, initial: Any = None) -> Tensor:
    total = keras.ops.sum(a, axis, keepdims=keepdims)
    return total if initial is None else total + initial


def _diff(a: Tensor, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    ends = [prepend, append]
    shape = list(a.shape)
    shape[axis] = 1
    first, last = (
        [] if end is None else [end if getattr(end, "shape", ()) else keras.ops.full(shape, end, a.dtype)]
        for end in ends
    )
    joined = [keras.ops.cast(part, a.dtype) for part in (*first, a, *last)]
    return keras.ops.diff(keras.ops.concatenate(joined, axis), n, axis)


def _digitize(x: Tensor, bins: Tensor, right: bool = False) -> Tensor:
    if not right:
        return keras.ops.digitize(x, bins)
    return to_backend_tensors(ops.searchsorted(keras.ops.convert_to_tensor(bins), x, out_int32=True))


def _take(a: Tensor, indices: Tensor, axis: int | None = None, mode: str = "clip") -> Tensor:
    """`mode`: "clip": the first or last for indexes that are beyond them; "wrap": around; "raise": an IndexError."""
    length = int(np.prod(a.shape)) if axis is None else a.shape[axis]
    indices = keras.ops.cast(indices, "int32")
    if mode == "raise" and bool(keras.ops.any((indices < -length) | (indices >= length))):
        raise IndexError(f"an index is not between {-length} and {length - 1}")
    inside = keras.ops.clip(indices, -length, length - 1) if mode == "clip" else indices
    return keras.ops.take(a, keras.ops.mod(inside, length), axis)


def _repeat(a: Tensor, repeats: Any = 1, axis: int | None = None) -> Tensor:
    return keras.ops.repeat(a, np.asarray(repeats), axis)  # Not every backend accepts a list of counts.


def _corrcoef(x: Tensor, y: Tensor | None = None, rowvar: bool = True) -> Tensor:
    x, y = (
        value if value is None or rowvar or len(value.shape) < 2 else keras.ops.transpose(value) for value in (x, y)
    )
    rows = [keras.ops.reshape(value, (-1, value.shape[-1])) for value in (x, y) if value is not None]
    return keras.ops.corrcoef(rows[0] if len(rows) == 1 and len(x.shape) > 1 else keras.ops.concatenate(rows))


def _cumulative(name: Literal["cumsum", "nancumsum"]) -> _Function:
    """Return a cumulative sum, of small integers in int32."""
    function: _Function = getattr(keras.ops, name)

    def compute(a: Tensor, axis: int | None = None) -> Tensor:
        small = as_dtype(a.dtype) in (bool_, int8, int16, uint8, uint16)
        return function(keras.ops.cast(a, "int32") if small else a, axis)

    return compute


def _average(x: Tensor, axis: _Axis = None, weights: Tensor | None = None, returned: bool = False) -> Any:
    value = keras.ops.average(x, axis, weights)
    if not returned:
        return value
    counted = keras.ops.ones_like(x) if weights is None else weights
    return value, keras.ops.broadcast_to(keras.ops.sum(counted, axis), keras.ops.shape(value))


def _like(fill_value: float | None) -> _Function:
    """Return the function that fills an array like another: with a number, or with its second argument."""

    def filled(a: Tensor, fill_value: Any, dtype: DTypeLike | None = None, shape: Any = None) -> Tensor:
        shape = tuple(a.shape) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        value = keras.ops.cast(fill_value, a.dtype if dtype is None else as_dtype(dtype))
        return keras.ops.broadcast_to(value, shape)

    if fill_value is None:
        return filled
    return lambda a, dtype=None, shape=None: filled(a, fill_value, dtype, shape)


# Without those that an older Keras lacks.
EXTENDED: Final[dict[str, _Function]] = {
    **{name: _with_ddof(name) for name in ("std", "var", "nanstd", "nanvar") if hasattr(keras.ops, name)},
    "count_nonzero": _count_nonzero, "sum": _sum, "diff": _diff, "digitize": _digitize, "take": _take,
    "repeat": _repeat,
    **{name: _cumulative(name) for name in ("cumsum", "nancumsum") if hasattr(keras.ops, name)},
    **({"corrcoef": _corrcoef} if hasattr(keras.ops, "corrcoef") else {}),
    "ones_like": _like(1), "zeros_like": _like(0), "empty_like": _like(0), "full_like": _like(None),
    "average": _average,
    **{
        name: _of_operator(getattr(ops, name))
        for name in (
            "abs", "absolute", "maximum", "minimum", "copysign", "float_power", "hypot", "logaddexp", "logaddexp2",
        )
    },
}
