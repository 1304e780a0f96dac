"""`MatMul`, `Norm`, `OneHot` and `Range`: cells that wrap one operation."""

from __future__ import annotations

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.dtype import as_dtype, float32
from mixtrain.nn.layer.inputs import float_tensor, promote
from mixtrain.nn.layer.windows import is_integral
from mixtrain.ops.inputs import widened
from mixtrain.typing import DTypeLike, Tensor

# Bound at import, so that autocast does not intercept it: the operands already have one dtype.
_matmul = keras.ops.matmul


class MatMul(Cell):
    """Multiply matrices, or batches; `transpose_x1` and `transpose_x2` swap the last two axes of an input first.

    Inputs: x1 and x2, floating point, whose leading axes broadcast; either may be a vector.
    Returns: The product, in the wider of their dtypes.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.MatMul(transpose_x2=True)(mixtrain.Tensor([[1.0, 2.0]]), mixtrain.Tensor([[3.0, 4.0]])).numpy().tolist()
        [[11.0]]
    """

    precision_family = "matmul"

    def __init__(self, transpose_x1: bool = False, transpose_x2: bool = False) -> None:
        super().__init__()
        self.transpose_x1 = checks.boolean(self.cls_name, "transpose_x1", transpose_x1)
        self.transpose_x2 = checks.boolean(self.cls_name, "transpose_x2", transpose_x2)

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the product."""
        x1, x2 = promote(float_tensor(self, x1), float_tensor(self, x2))
        if self.transpose_x1 and len(x1.shape) > 1:
            x1 = keras.ops.swapaxes(x1, -1, -2)
        if self.transpose_x2 and len(x2.shape) > 1:
            x2 = keras.ops.swapaxes(x2, -1, -2)
        return backend.product(_matmul, x1, x2)


class Norm(Cell):
    """The L2 norm along `axis`, an int or a tuple of them, () for all; `keep_dims` keeps the reduced axes with size 1.

    Inputs: x, floating point.
    Returns: The norms, dtype of `x`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> float(nn.Norm()(mixtrain.Tensor([3.0, 4.0])))
        5.0
    """

    def __init__(self, axis: int | tuple[int, ...] = (), keep_dims: bool = False) -> None:
        super().__init__()
        if not is_integral(axis) and not (isinstance(axis, (tuple, list)) and all(map(is_integral, axis))):
            raise checks.fail_type(self.cls_name, "axis must be an int or a tuple of them", axis, "axis=()")
        self.axis, self.keep_dims = axis, checks.boolean(self.cls_name, "keep_dims", keep_dims)

    def construct(self, x: Tensor) -> Tensor:
        """Return the norms of `x`."""
        axis = None if isinstance(self.axis, (tuple, list)) and not self.axis else self.axis
        x = float_tensor(self, x)
        squares = keras.ops.sum(keras.ops.square(widened(x)), axis, keepdims=self.keep_dims)
        return keras.ops.cast(keras.ops.sqrt(squares), x.dtype)

    def extend_repr(self) -> str:
        return f"axis={self.axis}, keep_dims={self.keep_dims}"


class OneHot(Cell):
    """One-hot encoding with configurable values.

    Args:
        axis, depth: Position (the last by default) and size of the new axis.
        on_value, off_value: Values at the index and elsewhere, also everywhere for an index outside [0, depth).
        dtype: Dtype of the output.

    Inputs: indices, of an int dtype.
    Returns: The shape of indices with an additional axis of size `depth`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.OneHot(depth=3)(mixtrain.Tensor([1])).numpy().tolist()
        [[0.0, 1.0, 0.0]]
    """

    def __init__(
        self, axis: int = -1, depth: int = 1, on_value: float = 1.0, off_value: float = 0.0, dtype: DTypeLike = float32
    ) -> None:
        super().__init__()
        self.axis, self.depth = int(axis), checks.integer(self.cls_name, "depth", depth, at_least=1)
        self.on_value, self.off_value, self.dtype = on_value, off_value, as_dtype(dtype)

    def construct(self, indices: Tensor) -> Tensor:
        """Encode `indices`."""
        is_on = keras.ops.one_hot(backend.to_tensor(indices), self.depth, axis=self.axis, dtype="bool")
        on, off = (keras.ops.cast(value, self.dtype) for value in (self.on_value, self.off_value))
        return keras.ops.where(is_on, on, off)


class Range(Cell):
    """Evenly spaced numbers from `start` to `limit`, exclusive, by `delta`, not 0; `start` alone is the limit of a
    range from 0.

    Returns: A tensor of one axis: int32, or float32 if an argument is a float.

    Example:
        >>> import mixtrain.nn as nn
        >>> nn.Range(1, 8, 2)().numpy().tolist()
        [1, 3, 5, 7]
    """

    def __init__(self, start: float, limit: float | None = None, delta: float = 1) -> None:
        super().__init__()
        if delta == 0:
            raise checks.fail_value(self.cls_name, "delta must not be 0", delta, "delta=1")
        if limit is None:
            start, limit = 0, start
        numbers = np.arange(start, limit, delta)
        self.result_tensor = backend.to_tensor(numbers, "float32" if numbers.dtype.kind == "f" else "int32")

    def construct(self) -> Tensor:
        """Return the numbers."""
        return self.result_tensor
