"""`NLLLoss` and `KLDivLoss`: losses on log-probabilities."""

from __future__ import annotations

from typing import ClassVar

import keras

from mixtrain.dtype import float32
from mixtrain.nn.loss.base import LossBase
from mixtrain.ops.cross_entropy import classes_last, of_class_numbers
from mixtrain.ops.labels import as_float32, check_same_shape
from mixtrain.typing import Tensor, TensorLike


class NLLLoss(LossBase):
    """The negative log-probability of each label's class.

    Args:
        weight: Weights of the classes (C,).
        ignore_index: Class number whose elements are ignored.
        reduction: "mean" (weighted by `weight`), "sum" or "none".

    Inputs:
        logits: log-probabilities (C,), (N, C) or (N, C, ...), any float dtype. labels: class indices of an int dtype
        and the shape of logits without the class axis.

    Returns: float32: the shape of labels, or a scalar; NaN for the mean if all elements are ignored.
    Raises: ValueError: The shapes do not match, or, outside compiled steps, a class index is out of range.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> float(nn.NLLLoss()(mixtrain.Tensor([[-1.0, -2.0]]), mixtrain.Tensor([1])))
        2.0
    """

    def __init__(self, weight: TensorLike | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = None if weight is None else as_float32(weight)
        self.ignore_index = int(ignore_index)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss from log-probabilities and labels."""
        logits, labels = classes_last(
            self.cls_name, logits, labels, self.weight, self.ignore_index,
            numbers_only="class numbers, the argmax of the one-hot labels",
        )
        losses, weights = of_class_numbers(logits, labels, self.weight, self.ignore_index, 0.0, are_logs=True)
        if self.reduction == "mean":
            return keras.ops.sum(losses) / keras.ops.sum(weights)
        return self.get_loss(losses)


class KLDivLoss(LossBase):
    """Kullback-Leibler divergence: labels * (log(labels) - logits).

    Args: reduction: "mean" over all elements, "batchmean" (the sum divided by the size of the first axis), "sum" or
        "none".

    Inputs:
        logits: log-probabilities, any float dtype. labels: probabilities of the same shape; elements of 0 contribute 0.

    Returns: float32: the shape of the inputs, or a scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> float(nn.KLDivLoss("sum")(mixtrain.Tensor([-1.0, -2.0]), mixtrain.Tensor([1.0, 0.0])))
        1.0
    """

    _reductions: ClassVar[tuple[str, ...]] = ("mean", "batchmean", "sum", "none")

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss from log-probabilities and probabilities."""
        ops, logits, labels = keras.ops, as_float32(logits), as_float32(labels)
        check_same_shape(self.cls_name, logits, labels)
        positive = labels > 0
        logs = ops.log(ops.where(positive, labels, ops.ones_like(labels)))
        losses = ops.where(positive, labels * (logs - logits), ops.zeros_like(labels))
        if self.reduction == "batchmean":
            return ops.sum(losses) / ops.cast(ops.shape(logits)[0], float32)
        return self.get_loss(losses)
