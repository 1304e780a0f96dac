"""`CrossEntropyLoss`: cross entropy with class weights, ignored labels and label smoothing."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks, engine
from mixtrain.dtype import float32, is_float
from mixtrain.nn.layer.windows import is_integral
from mixtrain.nn.loss.base import LossBase, as_float32
from mixtrain.nn.loss.labels import check_class_numbers, check_range, check_same_shape, shape_of


class CrossEntropyLoss(LossBase):
    """The cross entropy between the softmax of scores along axis 1 and labels.

    Args:
        weight: Weights of the classes (C,).
        ignore_index: The class number whose elements count for nothing.
        reduction: "mean" (for class numbers weighted by `weight`), "sum" or "none".
        label_smoothing: Share of each label, in [0, 1], that is spread over all classes.

    Inputs:
        logits (C,), (N, C) or (N, C, ...), any float format. labels: class numbers of an int format and the shape of
        logits without the class axis; or probabilities, of a float format and the shape of logits.

    Returns:
        float32: the shape of logits without the class axis, or a scalar; NaN for the mean where all is ignored.

    Raises:
        TypeError: An argument or the labels have the wrong type.
        ValueError: The shapes do not fit, or, outside compiled steps, a class number is out of range. In a compiled
            step its loss is NaN where the device cannot raise an error.

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
        where, logits, labels = self.cls_name, as_float32(logits), engine.to_tensor(labels)
        shape = shape_of(logits)
        if not shape:
            raise checks.fail_value(where, "logits must have a class axis", shape, "logits (N, C)")
        axis = min(1, len(shape) - 1)
        classes = shape[axis]
        if self.weight is not None and shape_of(self.weight) != (classes,):
            raise checks.fail_value(
                where, f"weight must have shape ({classes},)", shape_of(self.weight), "one weight for each class"
            )
        # The classes come last from here on.
        scores = keras.ops.moveaxis(logits, axis, -1)
        if is_float(labels.dtype):
            check_same_shape(where, logits, labels)
            return self.get_loss(self._of_probabilities(scores, keras.ops.moveaxis(as_float32(labels), axis, -1)))
        wanted = shape[:axis] + shape[axis + 1 :]
        labels = check_class_numbers(where, labels, wanted, shape, "one-hot labels as float32")
        return self._of_class_numbers(scores, labels)

    def _of_probabilities(self, scores: Any, labels: Any) -> Any:
        ops, eps = keras.ops, self.label_smoothing
        if eps:
            labels = labels * (1 - eps) + eps / scores.shape[-1]
        if self.weight is not None:
            labels = labels * self.weight
        return -ops.sum(labels * ops.log_softmax(scores, axis=-1), axis=-1)

    def _of_class_numbers(self, scores: Any, labels: Any) -> Any:
        ops, eps, classes = keras.ops, self.label_smoothing, scores.shape[-1]
        counts = labels != self.ignore_index
        labels = ops.where(counts, labels, ops.zeros_like(labels))
        check_range(self.cls_name, "labels", labels, 0, classes - 1)
        weights = ops.cast(counts, float32)
        if self.weight is not None:
            weights = weights * ops.take(self.weight, labels)
        losses = engine.sparse_softmax_cross_entropy(labels, scores) * weights
        if eps:
            spread = -ops.log_softmax(scores, axis=-1)
            spread = ops.sum(spread if self.weight is None else spread * self.weight, axis=-1)
            losses = losses * (1 - eps) + ops.where(counts, spread, ops.zeros_like(spread)) * (eps / classes)
        return ops.sum(losses) / ops.sum(weights) if self.average else self.get_loss(losses)
