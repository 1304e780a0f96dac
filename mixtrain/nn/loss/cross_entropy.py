"""`CrossEntropyLoss`: cross entropy with class weights, ignored labels and label smoothing."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks
from mixtrain.dtype import is_float
from mixtrain.nn.layer.windows import is_integral
from mixtrain.nn.loss.base import LossBase, as_float32
from mixtrain.ops.cross_entropy import classes_last, of_class_numbers, of_probabilities


class CrossEntropyLoss(LossBase):
    """The cross entropy between the softmax of scores along axis 1 and labels.

    Args:
        weight: Weights of the classes (C,).
        ignore_index: The class number whose elements count for nothing.
        reduction: "mean" (for class numbers weighted by `weight`), "sum" or "none".
        label_smoothing: Share of each label, in [0, 1], that is spread over all classes.

    Inputs:
        logits (C,), (N, C) or (N, C, ...), any float dtype. labels: class numbers of an int dtype and the shape of
        logits without the class axis; or probabilities, of a float format and the shape of logits.

    Returns:
        float32: the shape of logits without the class axis, or a scalar; NaN for the mean where all is ignored.

    Raises:
        TypeError: An argument or the labels have the wrong type.
        ValueError: The shapes do not fit, or a class number is out of range. In a compiled step the labels of the
            batch are looked at before it runs; the loss is NaN for those computed in between.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> round(float(nn.CrossEntropyLoss()(mixtrain.Tensor([[0.0, 0.0]]), mixtrain.Tensor([1]))), 4)
        0.6931

    Source: Szegedy et al., 2016 (smoothing); MindSpore, `mindspore.nn.CrossEntropyLoss`.
    """

    def __init__(
        self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> None:
        super().__init__(reduction)
        where = self.cls_name
        self.weight = None if weight is None else as_float32(weight)
        if not is_integral(ignore_index):
            raise checks.fail_type(where, "ignore_index must be an int", ignore_index, "ignore_index=-100")
        self.ignore_index = int(ignore_index)
        self.label_smoothing = checks.number(where, "label_smoothing", label_smoothing, at_least=0, at_most=1)

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss of scores and labels."""
        scores, labels = classes_last(self.cls_name, logits, labels, self.weight, self.ignore_index)
        if is_float(labels.dtype):
            logs = keras.ops.log_softmax(scores, axis=-1)
            return self.get_loss(of_probabilities(logs, labels, self.weight, self.label_smoothing))
        losses, weights = of_class_numbers(scores, labels, self.weight, self.ignore_index, self.label_smoothing)
        if self.reduction == "mean":
            return keras.ops.sum(losses) / keras.ops.sum(weights)
        return self.get_loss(losses)
