"""`ClipByNorm`: clipping of a tensor to a maximum norm."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.dtype import as_dtype, float32
from mixtrain.nn.layer.inputs import float_tensor
from mixtrain.nn.layer.windows import is_integral
from mixtrain.typing import Tensor, TensorLike


class ClipByNorm(Cell):
    """Scale a tensor down to a maximum norm if its norm is larger.

    Args: axis: Axis or axes to compute the norm over; None for all.
    Inputs: x, floating point. clip_norm: the maximum norm, a number or a tensor that broadcasts with `x`.
    Returns: Same shape and dtype as `x`; the norm is computed in float32.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.ClipByNorm()(mixtrain.Tensor([3.0, 4.0]), 1.0).numpy().round(3)
        array([0.6, 0.8], dtype=float32)
    """

    def __init__(self, axis: int | Sequence[int] | None = None) -> None:
        super().__init__()
        axes = axis if isinstance(axis, (tuple, list)) else () if axis is None else (axis,)
        if not all(map(is_integral, axes)):
            raise checks.fail_type(self.cls_name, "axis must be an int, a tuple of them or None", axis, "axis=None")
        self.axis = axis

    def construct(self, x: Tensor, clip_norm: TensorLike) -> Tensor:
        """Return `x`, scaled down to the norm `clip_norm` if its norm is larger."""
        return clip_by_norm(float_tensor(self, x), clip_norm, self.axis)


def clip_by_norm(x: Tensor, clip_norm: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """Scale `x` down to the norm `clip_norm` over `axis` where its norm is larger."""
    ops = keras.ops
    max_norm, x32 = ops.cast(clip_norm, float32), ops.cast(x, float32)
    squares = ops.sum(ops.square(x32), axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=True)
    # Avoid the square root of 0, whose gradient is infinite.
    norm = ops.sqrt(ops.where(squares > 0, squares, ops.ones_like(squares)))
    return ops.cast(x32 * max_norm / ops.maximum(norm, max_norm), as_dtype(x.dtype))
