"""Margin, embedding and triplet losses."""

from __future__ import annotations

from collections.abc import Callable

import keras

from mixtrain import checks
from mixtrain.boundary import run_users, unwrap
from mixtrain.nn.loss.base import LossBase
from mixtrain.ops.arithmetic import maximum
from mixtrain.ops.labels import as_float32, check_same_shape, shape_of
from mixtrain.typing import Tensor


class SoftMarginLoss(LossBase):
    """log(1 + exp(-labels * logits)). `reduction`: "mean" or "sum" over all elements, or "none".

    Inputs: logits, any float dtype. labels: 1 or -1, of the same shape and any dtype.
    Returns: float32: the shape of the inputs, or a scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> round(float(nn.SoftMarginLoss()(mixtrain.Tensor([0.0]), mixtrain.Tensor([1.0]))), 4)
        0.6931
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss from logits and labels."""
        logits, labels = as_float32(logits), as_float32(labels)
        check_same_shape(self.cls_name, logits, labels)
        return self.get_loss(keras.ops.softplus(-labels * logits))


class HingeEmbeddingLoss(LossBase):
    """logits where labels are 1, max(0, `margin` - logits) where they are -1; `reduction` as in `MSELoss`.

    Inputs: logits: distances, any float dtype. labels: 1 or -1, of the same shape and any dtype.
    Returns: float32: the shape of the inputs, or a scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> float(nn.HingeEmbeddingLoss()(mixtrain.Tensor([0.25]), mixtrain.Tensor([-1.0])))
        0.75
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = checks.number(self.cls_name, "margin", margin)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss from distances and labels."""
        ops, logits, labels = keras.ops, as_float32(logits), as_float32(labels)
        check_same_shape(self.cls_name, logits, labels)
        zeros = ops.zeros_like(logits)
        dissimilar = ops.where(labels < 0, maximum(self.margin - logits, 0.0), zeros)
        return self.get_loss(ops.where(labels > 0, logits, zeros) + dissimilar)


class CosineEmbeddingLoss(LossBase):
    """1 - cosine of two vectors where labels are 1, max(0, cosine - `margin`) where they are -1, with `margin` in [-1,
    1]; `reduction` as in `MSELoss`.

    Inputs: logits_x1 and logits_x2 (N, D) of any float dtype. labels (N,): 1 or -1, of any dtype.
    Returns: float32: (N,), or a scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> x, y = mixtrain.Tensor([[1.0, 0.0]]), mixtrain.Tensor([[0.0, 1.0]])
        >>> float(nn.CosineEmbeddingLoss()(x, y, mixtrain.Tensor([1])))
        1.0
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = checks.number(self.cls_name, "margin", margin, at_least=-1, at_most=1, example=0.0)

    def construct(self, logits_x1: Tensor, logits_x2: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss from pairs of vectors and labels."""
        ops, x1, x2 = keras.ops, as_float32(logits_x1), as_float32(logits_x2)
        labels = as_float32(labels)
        check_same_shape(self.cls_name, x1, x2, ("logits_x1", "logits_x2"))
        if len(x1.shape) < 2:
            raise checks.fail_value(self.cls_name, "logits_x1 must have axes (N, D)", shape_of(x1), "x.reshape(1, -1)")
        norms = ops.sqrt(ops.sum(x1 * x1, 1)) * ops.sqrt(ops.sum(x2 * x2, 1))
        cosine = ops.sum(x1 * x2, 1) / norms
        check_same_shape(self.cls_name, cosine, labels, ("the pairs", "labels"))
        zeros = ops.zeros_like(cosine)
        dissimilar = ops.where(labels == -1, maximum(cosine - self.margin, 0.0), zeros)
        return self.get_loss(ops.where(labels == 1, 1.0 - cosine, zeros) + dissimilar)


class MarginRankingLoss(LossBase):
    """max(0, `margin` - target * (input1 - input2)); `reduction` as in `MSELoss`.

    Inputs:
        input1 and input2: scores of one shape and any float dtype. target: 1 where input1 should rank higher,
        -1 where input2 should; of the same shape.

    Returns: float32: the shape of the inputs, or a scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> x1, x2 = mixtrain.Tensor([1.0]), mixtrain.Tensor([3.0])
        >>> float(nn.MarginRankingLoss()(x1, x2, mixtrain.Tensor([1.0])))
        2.0
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = checks.number(self.cls_name, "margin", margin)

    def construct(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Compute the loss from pairs of scores and their expected order."""
        input1, input2, target = as_float32(input1), as_float32(input2), as_float32(target)
        check_same_shape(self.cls_name, input1, input2, ("input1", "input2"))
        check_same_shape(self.cls_name, input1, target, ("input1", "target"))
        missing = self.margin - target * (input1 - input2)
        return self.get_loss(keras.ops.where(missing < 0, keras.ops.zeros_like(missing), missing))


class TripletMarginWithDistanceLoss(LossBase):
    """max(0, margin + distance(x, positive) - distance(x, negative)).

    Args:
        distance_function: Function of two tensors; None for the Euclidean distance along the second axis.
        swap: Whether distance(positive, negative) replaces distance(x, negative) where it is smaller.
        reduction, margin: As in `MSELoss`, and the minimum difference of the two distances.

    Inputs: x, positive, negative: of one shape, any float dtype.
    Returns: float32: the shape of the distances, or a scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> near, far = mixtrain.Tensor([[0.0, 0.0]]), mixtrain.Tensor([[3.0, 4.0]])
        >>> float(nn.TripletMarginWithDistanceLoss(margin=6.0)(near, near, far))
        1.0
    """

    def __init__(
        self, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, swap: bool = False,
        reduction: str = "mean", margin: float = 1.0,
    ) -> None:
        super().__init__(reduction)
        self.distance_function = distance_function or _euclidean
        self.swap = checks.boolean(self.cls_name, "swap", swap)
        self.margin = checks.number(self.cls_name, "margin", margin, example=1.0)

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compute the loss from anchors `x`, positive and negative examples."""
        to_positive, to_negative = self._distance(x, positive), self._distance(x, negative)
        if self.swap:
            to_negative = keras.ops.minimum(to_negative, self._distance(positive, negative))
        return self.get_loss(keras.ops.maximum(to_positive - to_negative + self.margin, 0.0))

    def _distance(self, x: Tensor, y: Tensor) -> Tensor:
        return unwrap(run_users(self.distance_function, (x, y), {}))


def _euclidean(x: Tensor, y: Tensor) -> Tensor:
    return keras.ops.norm(as_float32(unwrap(x)) - as_float32(unwrap(y)), axis=1)
