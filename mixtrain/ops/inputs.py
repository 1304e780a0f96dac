"""Checks and conversions of arguments: tensors of one dtype, axes, shapes, values known while compiling."""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import tensor as tensor
from mixtrain.dtype import DType, as_dtype, bool_, complex64, float32, int64, is_complex, is_float, is_half
from mixtrain.ops.promotion import promoted
from mixtrain.typing import Tensor, TensorLike


def is_number(value: Any) -> bool:
    """Whether `value` is a Python or NumPy number, which does not widen a tensor."""
    return isinstance(value, numbers.Complex) and not isinstance(value, np.ndarray) or isinstance(value, np.bool_)


def tensor_dtype(x: Tensor) -> DType:
    """Return the dtype of a tensor."""
    return dtype_of(x.dtype)


@functools.cache
def dtype_of(dtype: Any) -> DType:
    """Return the `DType` of a backend dtype."""
    return as_dtype(keras.backend.standardize_dtype(dtype))


def _dtype_with_number(x: Tensor, number: complex) -> DType:
    """Return the dtype that a tensor and a Python number promote to."""
    dtype = tensor_dtype(x)
    if isinstance(number, (bool, np.bool_)) or is_complex(dtype):
        return dtype
    if not isinstance(number, numbers.Real):
        return promoted(dtype, complex64)
    if is_float(dtype):
        return dtype
    if isinstance(number, numbers.Integral):
        return as_dtype(backend.canonical_dtype(int64)) if dtype == bool_ else dtype
    return float32


def pair(where: str, x: TensorLike, y: TensorLike, *, broadcast: bool = True) -> tuple[Tensor, Tensor]:
    """Return two arguments in the dtype they promote to; at most one of them stays a Python number.

    With `broadcast`, shapes that do not broadcast are a ValueError.
    """
    if is_number(x) and is_number(y):
        x = tensor(where, x)
    if is_number(y):
        x = tensor(where, x)
        dtype = _dtype_with_number(x, y)
        return backend.cast_keeping_layout(x, dtype), _python_number(y, dtype)
    if is_number(x):
        y, x = pair(where, y, x)
        return x, y
    x, y = tensor(where, x), tensor(where, y)
    if broadcast:
        check_broadcast(where, x, y)
    dtype = promoted(tensor_dtype(x), tensor_dtype(y))
    return backend.cast_keeping_layout(x, dtype), backend.cast_keeping_layout(y, dtype)


def _python_number(number: Any, dtype: DType) -> complex:
    """Return a number as the Python type that leaves a tensor of `dtype` in its dtype."""
    if is_complex(dtype):
        return complex(number)
    if is_float(dtype):
        return float(number)
    return bool(number) if dtype == bool_ else int(number)


def check_broadcast(where: str, x: Tensor, y: Tensor) -> None:
    """Raise a ValueError where two shapes are known not to broadcast."""
    for x_size, y_size in zip(reversed(tuple(x.shape)), reversed(tuple(y.shape)), strict=False):
        if isinstance(x_size, int) and isinstance(y_size, int) and x_size != y_size and 1 not in (x_size, y_size):
            raise ValueError(
                f"{where}: expected shapes that broadcast; got {tuple(x.shape)} and {tuple(y.shape)}. "
                "Write sizes that are equal, or 1, from the last axis on."
            )


def as_floats(where: str, value: TensorLike) -> Tensor:
    """Return `value` as a float or complex tensor; integers and bools become float32."""
    x = tensor(where, value)
    return x if tensor_dtype(x).startswith(("float", "bfloat", "complex")) else keras.ops.cast(x, float32)


def widened(x: Tensor) -> Tensor:
    """Return a half-precision tensor in float32, where sums of squares do not overflow; others unchanged."""
    return keras.ops.cast(x, float32) if is_half(x.dtype) else x


def known_int(where: str, value: Any) -> Any:
    """Return the number of a tensor of one element that is known while compiling; anything else unchanged."""
    return values_of(where, value).item() if backend.is_tensor(value) and math.prod(value.shape) == 1 else value


def values_of(where: str, value: TensorLike) -> np.ndarray:
    """Return numbers that must be known while compiling: an int, a list, an array, or a constant tensor."""
    values = backend.known_value(tensor(where, value))
    if values is None:
        raise checks.fail_type(where, "numbers known while compiling were needed", value, "a tuple of ints")
    return values


def as_mask(where: str, value: TensorLike) -> Tensor:
    """Return `value` as a tensor, which must be of bools."""
    x = tensor(where, value)
    if x.dtype != bool_:
        dtype = tensor_dtype(x).name
        raise TypeError(f"{where}: expected a mask of bools; got {dtype}. Write x.astype(mixtrain.bool_).")
    return x


def rank_of(x: Tensor) -> int:
    """Return the number of axes."""
    return len(x.shape)


def an_int(where: str, name: str, value: Any, *, example: int = 0) -> Any:
    """Return a value that must be an int."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise checks.fail_type(where, f"{name} must be an int", value, f"{name}={example}")
    return value


def axis_of(where: str, axis: Any, rank: int, *, name: str = "axis") -> int:
    """Return an axis counted from the front; one that is not an int, or that does not exist, is an error."""
    an_int(where, name, axis)
    if not -max(rank, 1) <= int(axis) < max(rank, 1):
        raise checks.fail_value(
            where, f"{name} must be at least {-rank} and below {rank}, as there are {rank} axes", axis, f"{name}=0"
        )
    return int(axis) % max(rank, 1)


def axes_of(where: str, axis: Any, rank: int, *, name: str = "axis") -> tuple[int, ...]:
    """Return axes counted from the front: one for an int, all of them for None and for an empty tuple."""
    if axis is None or (isinstance(axis, (list, tuple)) and not axis):
        return tuple(range(rank))
    if backend.is_tensor(axis) or isinstance(axis, np.ndarray):
        axis = values_of(where, axis).reshape(-1).tolist()
    if not isinstance(axis, (list, tuple)):
        axis = (axis,)
    axes = tuple(axis_of(where, item, rank, name=name) for item in axis)
    if len(set(axes)) < len(axes):
        raise checks.fail_value(where, f"{name} must name each axis once", axis, f"{name}={axes[0]}")
    return () if rank == 0 else axes


def unpack(arguments: Sequence[Any]) -> Any:
    """Return the tuple (1, 2) for the arguments of ``f(1, 2)`` and of ``f((1, 2))``."""
    if len(arguments) == 1 and not is_number(arguments[0]):
        return arguments[0]
    return tuple(arguments)


def sizes_of(where: str, shape: Any, *, name: str = "shape") -> tuple[Any, ...]:
    """Return a shape, an int, tuple, list or tensor, as a tuple of ints, or of the backend's symbols for dynamic
    dimensions.
    """
    # Fast path for what most callers pass.
    if type(shape) is tuple and all(type(size) is int for size in shape):
        return shape
    if backend.is_tensor(shape):
        known = backend.known_value(shape)
        shape = keras.ops.unstack(shape) if known is None else known.reshape(-1).tolist()
    if isinstance(shape, np.ndarray):
        shape = shape.reshape(-1).tolist()
    if is_number(shape):
        shape = (shape,)
    try:
        sizes = tuple(shape)
    except TypeError:
        sizes = (shape,)
    for size in sizes:
        is_int = isinstance(size, numbers.Integral) and not isinstance(size, bool)
        if not (is_int or size is None or backend.is_unknown_dimension(size)):
            raise checks.fail_type(where, f"{name} must be a tuple of ints", shape, f"{name}=(2, 3)")
    return tuple(int(size) if isinstance(size, numbers.Integral) else size for size in sizes)
