"""`BCELoss` and `BCEWithLogitsLoss`: binary cross-entropy."""

from __future__ import annotations

from mixtrain.nn.loss.base import LossBase
from mixtrain.ops.labels import as_float32, check_broadcast, check_range, check_same_shape, shape_of
from mixtrain.ops.loss import binary_losses, logit_losses
from mixtrain.typing import Tensor, TensorLike


class BCELoss(LossBase):
    """Binary cross-entropy between probabilities and labels, times `weight`, which broadcasts; `reduction` as in
    `MSELoss`.

    Inputs: logits: probabilities in [0, 1], any float dtype. labels: of the same shape, in [0, 1], any dtype.
    Returns: float32: the shape of the inputs, or a scalar.
    Raises: ValueError: The shapes do not match, or a probability is outside [0, 1]. In a compiled step its loss is NaN
        instead.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> round(float(nn.BCELoss()(mixtrain.Tensor([0.5]), mixtrain.Tensor([1.0]))), 4)
        0.6931
    """

    def __init__(self, weight: TensorLike | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = None if weight is None else as_float32(weight)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss from probabilities and labels."""
        x, y = as_float32(logits), as_float32(labels)
        check_same_shape(self.cls_name, x, y)
        check_range(self.cls_name, "logits, which are probabilities here,", x, 0, 1)
        losses = binary_losses(x, y)
        if self.weight is None:
            return self.get_loss(losses)
        check_broadcast(self.cls_name, shape_of(x), "weight", self.weight)
        return self.get_loss(losses, self.weight)


class BCEWithLogitsLoss(LossBase):
    """Binary cross-entropy between the sigmoid of logits and labels, computed stably.

    Args:
        reduction, weight: As in `BCELoss`.
        pos_weight: Weights of the positive labels, broadcast likewise.

    Inputs: logits: any float dtype. labels: of the same shape, in [0, 1], any dtype.
    Returns: float32: the shape of the inputs, or a scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> round(float(nn.BCEWithLogitsLoss()(mixtrain.Tensor([0.0]), mixtrain.Tensor([1.0]))), 4)
        0.6931
    """

    def __init__(
        self, reduction: str = "mean", weight: TensorLike | None = None, pos_weight: TensorLike | None = None
    ) -> None:
        super().__init__(reduction)
        self.weight = None if weight is None else as_float32(weight)
        self.pos_weight = None if pos_weight is None else as_float32(pos_weight)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss from logits and labels."""
        x, y = as_float32(logits), as_float32(labels)
        check_same_shape(self.cls_name, x, y)
        for name in ("weight", "pos_weight"):
            value = getattr(self, name)
            if value is not None:
                check_broadcast(self.cls_name, shape_of(x), name, value)
        losses = logit_losses(x, y, y if self.pos_weight is None else y * self.pos_weight)
        return self.get_loss(losses) if self.weight is None else self.get_loss(losses, self.weight)
