"""`CrossEntropyLoss`: cross-entropy with class weights, ignored labels and label smoothing."""

from __future__ import annotations

import keras

from mixtrain import checks
from mixtrain.dtype import is_float
from mixtrain.nn.loss.base import LossBase
from mixtrain.ops.cross_entropy import classes_last, of_class_numbers, of_probabilities
from mixtrain.ops.labels import as_float32
from mixtrain.typing import Tensor, TensorLike


class CrossEntropyLoss(LossBase):
    """Cross-entropy between the softmax of logits along axis 1 and labels.

    Args:
        weight: Weights of the classes (C,).
        ignore_index: Class number whose elements are ignored.
        reduction: "mean" (weighted by `weight` for class indices), "sum" or "none".
        label_smoothing: Fraction of each label, in [0, 1], that is distributed over all classes.

    Inputs:
        logits (C,), (N, C) or (N, C, ...), any float dtype. labels: class indices of an int dtype and the shape of
        logits without the class axis; or probabilities, of a float dtype and the shape of logits.

    Returns:
        float32: the shape of logits without the class axis, or a scalar; NaN for the mean if all elements are ignored.

    Raises: ValueError: The shapes do not match, or a class index is out of range. A compiled step checks the labels of
        its batch before it runs; for labels computed inside the step, the loss is NaN instead.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> round(float(nn.CrossEntropyLoss()(mixtrain.Tensor([[0.0, 0.0]]), mixtrain.Tensor([1]))), 4)
        0.6931

    Source: Szegedy et al., 2016 (smoothing); MindSpore, `mindspore.nn.CrossEntropyLoss`.
    """

    def __init__(
        self, weight: TensorLike | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        where = self.cls_name
        self.weight = None if weight is None else as_float32(weight)
        self.ignore_index = int(ignore_index)
        self.label_smoothing = checks.number(where, "label_smoothing", label_smoothing, at_least=0, at_most=1)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss from logits and labels."""
        logits, labels = classes_last(self.cls_name, logits, labels, self.weight, self.ignore_index)
        if is_float(labels.dtype):
            logs = keras.ops.log_softmax(logits, axis=-1)
            return self.get_loss(of_probabilities(logs, labels, self.weight, self.label_smoothing))
        losses, weights = of_class_numbers(logits, labels, self.weight, self.ignore_index, self.label_smoothing)
        if self.reduction == "mean":
            return keras.ops.sum(losses) / keras.ops.sum(weights)
        return self.get_loss(losses)
