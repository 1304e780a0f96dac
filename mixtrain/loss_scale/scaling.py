"""A loss times the loss scale, a gradient divided by it: in float32 at the least, for half cannot hold every scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from mixtrain import backend
from mixtrain.dtype import float32, is_float, wider


def scaled(value: Any, loss_scale: Any) -> Any:
    """Return a loss, or a gradient, dense or sparse, multiplied by the scale; None stays None.

    Args:
        value: Tensor of any shape and float format.
        loss_scale: Scalar, float32.

    Returns:
        A tensor in the wider format of `value` and float32.

    Example:
        >>> import mixtrain
        >>> float(scaled(mixtrain.Tensor(2.0, mixtrain.float16), mixtrain.Tensor(2.0**20)))
        2097152.0
    """
    return _wide(lambda x, scale: x * scale, value, loss_scale)


def unscaled(value: Any, loss_scale: Any) -> Any:
    """Return a gradient, dense or sparse, divided by the scale; None stays None.

    A product with 1 / scale would be 0 for the largest scales, whose inverse float32 flushes to 0.

    Args:
        value: Tensor of any shape and float format.
        loss_scale: Scalar, float32.

    Returns:
        A tensor in the wider format of `value` and float32.
    """
    return _wide(lambda x, scale: x / scale, value, loss_scale)


def _wide(function: Callable[[Any, Any], Any], value: Any, loss_scale: Any) -> Any:
    def one(values: Any) -> Any:
        dtype = wider(values.dtype, float32) if is_float(values.dtype) else float32
        return function(keras.ops.cast(values, dtype), keras.ops.cast(loss_scale, dtype))

    return None if value is None else backend.map_values(one, value)
