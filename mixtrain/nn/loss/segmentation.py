"""`DiceLoss`, `MultiClassDiceLoss` and `FocalLoss`: losses for imbalanced segmentation."""

from __future__ import annotations

import keras

from mixtrain import backend, checks
from mixtrain.class_labels import require_classes
from mixtrain.dtype import is_float
from mixtrain.nn.layer.activation import ActivationLike, activation_of
from mixtrain.nn.loss.base import LossBase
from mixtrain.ops.labels import as_float32, check_same_shape, shape_of
from mixtrain.typing import Tensor, TensorLike


def _dice(logits: Tensor, label: Tensor, smooth: float) -> Tensor:
    ops = keras.ops
    return 1 - 2 * ops.sum(logits * label) / (ops.sum(logits * logits) + ops.sum(label * label) + smooth)


class DiceLoss(LossBase):
    """1 - 2 * sum(logits * label) / (sum(logits ** 2) + sum(label ** 2) + `smooth`), over all elements; `smooth` is
    above 0.

    Inputs: logits: probabilities, any float dtype. label: of the same shape and any dtype.
    Returns: A float32 scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> round(float(nn.DiceLoss()(mixtrain.Tensor([1.0, 0.0]), mixtrain.Tensor([1.0, 0.0]))), 3)
        0.0

    Source: Milletari et al., 2016; MindSpore, `mindspore.nn.DiceLoss`.
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        self.smooth = checks.number(self.cls_name, "smooth", smooth, above=0, example=1e-5)

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        """Compute the loss from probabilities and labels."""
        logits, label = as_float32(logits), as_float32(label)
        check_same_shape(self.cls_name, logits, label, ("logits", "label"))
        return _dice(logits, label, self.smooth)


class MultiClassDiceLoss(LossBase):
    """The mean over classes of `DiceLoss`, after an activation.

    Args:
        weights: Weights of the classes, with two axes (C, ...) as in MindSpore; None for 1.
        ignore_indiex: Class to ignore; None for none.
        activation: Applied to the logits: "softmax", "logsoftmax", "relu", "relu6", "tanh", "sigmoid" or a Cell; None
            for no activation.

    Inputs: logits (N, C, ...), any float dtype. label: of the same shape and any dtype.
    Returns: float32: a scalar, or the shape of the weights of one class.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> x = mixtrain.Tensor([[1.0, 0.0]])
        >>> round(float(nn.MultiClassDiceLoss(activation=None)(x, x)), 3)
        0.5

    Source: Milletari et al., 2016; MindSpore, `mindspore.nn.MultiClassDiceLoss`.
    """

    def __init__(
        self, weights: TensorLike | None = None, ignore_indiex: int | None = None,
        activation: ActivationLike | None = "softmax",
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.weights = None if weights is None else as_float32(weights)
        if self.weights is not None and len(self.weights.shape) != 2:
            raise checks.fail_value(where, "weights must have 2 axes", shape_of(self.weights), "weights (C, 1)")
        if ignore_indiex is not None:
            checks.integer(where, "ignore_indiex", ignore_indiex, at_least=0)
        self.ignore_indiex = ignore_indiex
        if isinstance(activation, str):
            checks.one_of(
                where, "activation", activation, ("softmax", "logsoftmax", "relu", "relu6", "tanh", "sigmoid")
            )
        self.activation = activation_of(where, activation)

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        """Compute the loss from logits and labels."""
        logits, label = as_float32(logits), as_float32(label)
        check_same_shape(self.cls_name, logits, label, ("logits", "label"))
        if len(label.shape) < 2:
            raise checks.fail_value(self.cls_name, "logits must have axes (N, C, ...)", shape_of(logits), "(N, C)")
        if self.activation is not None:
            logits = self.activation(logits)
        classes = label.shape[1]
        if self.weights is not None and self.weights.shape[0] != classes:
            raise checks.fail_value(
                self.cls_name, f"weights must have {classes} rows, one for each class", shape_of(self.weights),
                f"weights of shape ({classes}, 1)",
            )
        total: Tensor = 0.0
        for index in range(classes):
            if index != self.ignore_indiex:
                loss = _dice(logits[:, index], label[:, index], 1e-5)
                total = total + (loss if self.weights is None else loss * self.weights[index])
        # As in MindSpore, an ignored class counts in the denominator.
        return total / classes


class FocalLoss(LossBase):
    """Focal loss: cross-entropy with each element weighted by (1 - its probability) ** gamma.

    Args:
        weight: Weights of the classes (C,).
        gamma: Focusing parameter: larger values down-weight well-classified elements more.
        reduction: "mean", "sum" or "none", after the mean over the positions of each sample.

    Inputs:
        logits (N, C) or (N, C, ...), any float dtype. labels: one-hot, of the shape of logits; or class indices, with
        size 1 instead of C.

    Returns: float32: a scalar; for "none" (N,), or (N, C) if labels are one-hot.
    Raises: ValueError: The shapes do not match, or, outside compiled steps, a class index is out of range.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> round(float(nn.FocalLoss()(mixtrain.Tensor([[0.0, 0.0]]), mixtrain.Tensor([[1]]))), 4)
        0.1733

    Source: Lin et al., 2017; MindSpore, `mindspore.nn.FocalLoss`.
    """

    def __init__(self, weight: TensorLike | None = None, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = None if weight is None else as_float32(weight)
        if self.weight is not None and len(self.weight.shape) != 1:
            raise checks.fail_value(
                self.cls_name, "weight must have 1 axis", shape_of(self.weight), "one weight for each class"
            )
        self.gamma = checks.number(self.cls_name, "gamma", gamma, example=2.0)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss from logits and labels."""
        ops, logits, labels = keras.ops, as_float32(logits), backend.to_tensor(labels)
        shape, label_shape = shape_of(logits), shape_of(labels)
        if len(shape) < 2 or len(label_shape) != len(shape) or label_shape[1] not in (1, shape[1]):
            expected = (shape[0], 1, *shape[2:]) if len(shape) > 1 else ("N", 1)
            raise ValueError(
                f"{self.cls_name}: expected logits (N, C, ...) and labels of their shape or with 1 in place of C; got "
                f"logits {shape} and labels {label_shape}. Write labels {expected} of class numbers."
            )
        sparse = label_shape[1] == 1 and shape[1] != 1
        if sparse:
            require_classes(self.cls_name, labels, shape[1])
        # (N, C, positions)
        logs = ops.log_softmax(ops.reshape(logits, (ops.shape(logits)[0], shape[1], -1)), axis=1)
        labels = ops.reshape(labels, (ops.shape(labels)[0], label_shape[1], -1))
        weight = None if self.weight is None else self.weight[None, :, None] * ops.ones_like(logs)
        if sparse:
            if is_float(labels.dtype):
                labels = ops.cast(labels, "int32")
            logs = ops.take_along_axis(logs, labels, axis=1)
            weight = None if weight is None else ops.take_along_axis(weight, labels, axis=1)
        losses = -ops.power(1.0 - ops.exp(logs), self.gamma) * (logs if weight is None else logs * weight)
        if sparse:
            return self.get_loss(ops.mean(losses[:, 0], axis=1))
        return self.get_loss(ops.mean(losses * as_float32(labels), axis=-1))
