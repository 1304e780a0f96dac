"""Normalization of vectors to length 1."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks
from mixtrain.dtype import float32
from mixtrain.ops.inputs import as_floats, axes_of, rank_of
from mixtrain.ops.primitive import Primitive


class L2Normalize(Primitive):
    """Divide by the root of the sum of squares along axes, computed in at least float32.

    Args:
        axis: An int, or a list or tuple of ints.
        epsilon: The least sum of squares that is divided by.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There is no such axis, or `epsilon` is negative.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> [round(one, 4) for one in ops.L2Normalize()(mixtrain.Tensor([3.0, 4.0])).numpy().tolist()]
        [0.6, 0.8]

    Source: MindSpore, `mindspore.ops.L2Normalize`.
    """

    def __init__(self, axis: Any = 0, epsilon: float = 1e-4) -> None:
        super().__init__()
        self.axis = axis
        self.epsilon = checks.number(self.name, "epsilon", epsilon, at_least=0, example=1e-4)

    def __call__(self, input_x: Any) -> Any:
        """Normalize `input_x`; its shape and format stay."""
        x = as_floats(self.name, input_x)
        axes = axes_of(self.name, self.axis, rank_of(x))
        squares = keras.ops.sum(keras.ops.square(keras.ops.cast(x, float32)), axis=axes, keepdims=True)
        return x * keras.ops.cast(keras.ops.rsqrt(keras.ops.maximum(squares, self.epsilon)), x.dtype)
