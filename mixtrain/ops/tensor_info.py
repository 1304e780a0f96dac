"""Shape, size and dtype of a tensor, and casts, with their primitives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import is_any_tensor
from mixtrain.dtype import DType as NumberFormat, as_dtype, float32, int32, int64, is_float
from mixtrain.ops.elementwise import renamed
from mixtrain.ops.inputs import is_number, rank_of, tensor, tensor_dtype
from mixtrain.ops.primitive import primitives
from mixtrain.typing import DTypeLike, Tensor, TensorLike, Tree


def shape(input_x: TensorLike) -> tuple[int, ...]:
    """The shape of `input_x`, a tuple of ints; in a compiled function an unknown dimension is a scalar tensor.

    Example: ``ops.shape(Tensor([[1.0, 2.0]]))`` is ``(1, 2)``.
    """
    return tuple(keras.ops.shape(tensor("ops.shape", input_x)))


def dyn_shape(input_x: TensorLike) -> Tensor:
    """The shape of `input_x` as an int64 tensor."""
    return backend.to_tensor(shape(input_x), int64)


def dtype(x: TensorLike) -> NumberFormat:
    """The dtype of the tensor `x`. Example: ``ops.dtype(Tensor([1.0]))`` is ``mixtrain.float32``."""
    return tensor_dtype(tensor("ops.dtype", x))


def rank(input_x: TensorLike) -> int:
    """The number of axes of `input_x`. Example: ``ops.rank(x)``."""
    return rank_of(tensor("ops.rank", input_x))


def size(input_x: TensorLike) -> int:
    """The number of elements of `input_x`. Example: ``ops.size(x)``."""
    return math.prod(shape(input_x))


numel = renamed(size, "numel")


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor or Parameter."""
    return is_any_tensor(obj)


def cast(input: TensorLike, dtype: DTypeLike) -> Tensor:
    """`input` in another `dtype`, or the dtype of that name. Example: ``ops.cast(x, mixtrain.int32)``."""
    return backend.cast_keeping_layout(tensor("ops.cast", input), backend.canonical_dtype(as_dtype(dtype)))


def mixed_precision_cast(dst_dtype: DTypeLike, x: Tree) -> Tree:
    """Cast the floats in the tree `x` to `dst_dtype`: ``ops.mixed_precision_cast(mixtrain.float16, (x, y))``."""
    return keras.tree.map_structure(
        lambda value: cast(value, dst_dtype) if is_tensor(value) and is_float(value.dtype) else value, x
    )


def scalar_cast(input_x: Any, input_y: DTypeLike) -> Any:
    """The Python number `input_x` cast to the dtype `input_y`."""
    if not is_number(input_x):
        raise checks.fail_type("ops.scalar_cast", "input_x must be a number", input_x, "ops.cast(x, dtype)")
    return np.asarray(input_x).astype(np.dtype(as_dtype(input_y))).item()


def scalar_to_tensor(input_x: float, dtype: DTypeLike = float32) -> Tensor:
    """A scalar tensor of `dtype` from the number `input_x`. Example: ``ops.scalar_to_tensor(2)``."""
    if not is_number(input_x):
        raise checks.fail_type("ops.scalar_to_tensor", "input_x must be a number", input_x, "ops.cast(x, dtype)")
    return backend.to_tensor(input_x, as_dtype(dtype))


def scalar_to_array(input_x: float) -> Tensor:
    """Make a scalar tensor from the number `input_x`."""
    return tensor("ops.scalar_to_array", input_x)


def tuple_to_array(input_x: Sequence[float]) -> Tensor:
    """A tensor with one axis from the tuple of numbers `input_x`. Example: ``ops.tuple_to_array((1, 2, 3))``."""
    if not isinstance(input_x, (tuple, list, range)):
        raise checks.fail_type("ops.tuple_to_array", "input_x must be a tuple of numbers", input_x, "(1, 2, 3)")
    x = tensor("ops.tuple_to_array", tuple(input_x))
    return keras.ops.cast(x, int32) if x.dtype == int64 else x


def make_range(*limits: int) -> tuple[int, ...]:
    """The tuple of ints that ``range(*limits)`` runs through. Example: ``ops.make_range(3)`` is ``(0, 1, 2)``."""
    return tuple(range(*limits))


(
    Shape, TensorShape, DynamicShape, DType, Rank, Size, Cast, ScalarCast, ScalarToTensor, ScalarToArray, TupleToArray,
) = primitives(
    Shape=shape, TensorShape=dyn_shape, DynamicShape=dyn_shape, DType=dtype, Rank=rank, Size=size, Cast=cast,
    ScalarCast=scalar_cast, ScalarToTensor=scalar_to_tensor, ScalarToArray=scalar_to_array, TupleToArray=tuple_to_array,
)
