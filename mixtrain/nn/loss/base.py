"""`LossBase`: the base class of losses, with weighting and reduction in float32."""

from __future__ import annotations

from typing import ClassVar

import keras

from mixtrain import checks
from mixtrain.boundary import library
from mixtrain.cell.cell import Cell
from mixtrain.ops.labels import as_float32
from mixtrain.typing import Tensor, TensorLike


class LossBase(Cell):
    """Base class of losses; a subclass defines `construct` and returns `get_loss` of its elements.

    Args: reduction: "mean" or "sum" over all elements, or "none".

    Example:
        >>> import keras, mixtrain.nn as nn
        >>> class Quartic(nn.LossBase):
        ...     def construct(self, logits, labels):
        ...         return self.get_loss(keras.ops.power(logits - labels, 4))
    """

    _reductions: ClassVar[tuple[str, ...]] = ("mean", "sum", "none")

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = checks.one_of(self.cls_name, "reduction", reduction, self._reductions)
        # As in MindSpore: `average` is meaningful only if `reduce` is True.
        self.average = reduction != "sum"
        self.reduce = reduction != "none"

    def get_axis(self, x: Tensor) -> tuple[int, ...]:
        """Return the indices of all axes of `x`."""
        return tuple(range(len(x.shape)))

    @library
    def get_loss(self, x: Tensor, weights: TensorLike = 1.0) -> Tensor:
        """Weight the elements of a loss and reduce them.

        Args:
            x: Losses, of any float dtype.
            weights: A number or a tensor that broadcasts with `x`.

        Returns: A float32 tensor: a scalar, or the shape of `x` for "none".
        """
        x = as_float32(x)
        if not isinstance(weights, (int, float)) or weights != 1:
            x = x * as_float32(weights)
        if not self.reduce:
            return x
        return keras.ops.mean(x) if self.average else keras.ops.sum(x)


# The name before MindSpore 1.3.
_Loss = LossBase
