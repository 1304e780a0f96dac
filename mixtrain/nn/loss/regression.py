"""`MSELoss` and `L1Loss`: how far numbers are from their targets."""

from __future__ import annotations

import warnings
from typing import Any

import keras

from mixtrain.nn.loss.base import LossBase, as_float32
from mixtrain.nn.loss.labels import Shape, shape_of


class _Distance(LossBase):
    """A loss of the differences between two tensors that broadcast."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss of predictions and targets."""
        logits, labels = as_float32(logits), as_float32(labels)
        _check_broadcast(self.cls_name, shape_of(logits), shape_of(labels))
        return self.get_loss(self._distance(logits - labels))

    def _distance(self, difference: Any) -> Any:
        raise NotImplementedError(f"{self.cls_name}: a subclass must define _distance(self, difference).")


class MSELoss(_Distance):
    """The squared difference.

    Args:
        reduction: "mean" or "sum" over all elements, or "none".

    Inputs:
        logits and labels, of any format, of one shape or shapes that broadcast.

    Returns:
        float32: the broadcast shape, or a scalar.

    Raises:
        ValueError: The shapes do not broadcast.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> float(nn.MSELoss()(mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([1.0, 4.0])))
        2.0

    Source: MindSpore, `mindspore.nn.MSELoss`.
    """

    def _distance(self, difference: Any) -> Any:
        return keras.ops.square(difference)


class L1Loss(_Distance):
    """The absolute difference.

    Args:
        reduction: "mean" or "sum" over all elements, or "none".

    Inputs:
        logits and labels, of any format, of one shape or shapes that broadcast.

    Returns:
        float32: the broadcast shape, or a scalar.

    Raises:
        ValueError: The shapes do not broadcast.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> float(nn.L1Loss()(mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([1.0, 4.0])))
        1.0

    Source: MindSpore, `mindspore.nn.L1Loss`.
    """

    def _distance(self, difference: Any) -> Any:
        return keras.ops.absolute(difference)


def _check_broadcast(where: str, one: Shape, other: Shape) -> None:
    """Raise where two shapes do not broadcast; warn where each is stretched, as (N, 1) and (N,) are to (N, N)."""
    rank = max(len(one), len(other))
    pairs = list(zip((1,) * (rank - len(one)) + one, (1,) * (rank - len(other)) + other, strict=True))
    if any(a != b and 1 not in (a, b) and None not in (a, b) for a, b in pairs):
        raise ValueError(
            f"{where}: expected labels that broadcast with logits {one}; got labels {other}. Write labels of shape "
            f"{one}."
        )
    if any(a == 1 and b not in (1, None) for a, b in pairs) and any(b == 1 and a not in (1, None) for a, b in pairs):
        warnings.warn(
            f"{where}: logits {one} and labels {other} are both stretched to one shape, so each prediction meets other "
            f"samples' labels. Write labels of shape {one} if that is not meant.",
            stacklevel=2,
        )
