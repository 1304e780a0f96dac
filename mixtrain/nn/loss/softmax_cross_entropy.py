"""`SoftmaxCrossEntropyWithLogits`: softmax cross-entropy of logits (N, C)."""

from __future__ import annotations

import keras

from mixtrain import backend, checks
from mixtrain.nn.loss.base import LossBase
from mixtrain.ops.labels import as_float32, check_class_numbers, check_same_shape, shape_of
from mixtrain.typing import Tensor


class SoftmaxCrossEntropyWithLogits(LossBase):
    """Cross-entropy between the softmax of logits and labels.

    Args:
        sparse: Whether labels are class indices (N,) instead of probabilities (N, C), such as one-hot rows.
        reduction: "mean", "sum" or "none", which is the default.

    Inputs: logits (N, C), any float dtype. labels (N,) of an int dtype, or (N, C) of any dtype, rows summing to 1.
    Returns: float32: (N,), or a scalar.
    Raises: ValueError: The shapes do not match, or a class index is out of range. A compiled step checks the labels of
        its batch before it runs; for labels computed inside the step, the loss is NaN instead.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        >>> round(float(loss(mixtrain.Tensor([[0.0, 0.0]]), mixtrain.Tensor([1]))), 4)
        0.6931
    """

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.sparse = checks.boolean(self.cls_name, "sparse", sparse)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss from logits and labels."""
        where, logits = self.cls_name, as_float32(logits)
        shape = shape_of(logits)
        if len(shape) != 2:
            raise checks.fail_value(
                where, "logits must have 2 axes (N, C)", shape, "nn.CrossEntropyLoss() for logits (N, C, ...)"
            )
        if self.sparse:
            labels = check_class_numbers(where, labels, shape[:1], shape, "sparse=False", classes=shape[1])
            return self.get_loss(backend.sparse_softmax_cross_entropy(labels, logits))
        labels = as_float32(labels)
        if len(labels.shape) == 1:
            raise ValueError(
                f"{where}: expected labels {shape}, probabilities, for logits {shape}; got labels {shape_of(labels)}. "
                "Write sparse=True for class numbers."
            )
        check_same_shape(where, logits, labels)
        # As in MindSpore, no gradient flows into the labels.
        labels = keras.ops.stop_gradient(labels)
        return self.get_loss(backend.softmax_cross_entropy(labels, logits))
