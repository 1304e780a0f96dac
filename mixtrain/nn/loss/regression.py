"""Regression losses: `MSELoss`, `L1Loss`, `MAELoss`, `RMSELoss`, `SmoothL1Loss` and `HuberLoss`."""

from __future__ import annotations

import warnings

import keras

from mixtrain import checks
from mixtrain.nn.loss.base import LossBase
from mixtrain.ops.labels import Shape, as_float32, shape_of
from mixtrain.ops.unary import magnitude
from mixtrain.typing import Tensor


class _RegressionLoss(LossBase):
    """Base class of losses that are a function of the difference of predictions and targets."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss from predictions and targets."""
        return self.get_loss(self._elements(_difference(self, logits, labels)))

    def _elements(self, difference: Tensor) -> Tensor:
        raise NotImplementedError(f"{self.cls_name}: a subclass must define _elements(self, difference).")


class MSELoss(_RegressionLoss):
    """Mean squared error. `reduction`: "mean" or "sum" over all elements, or "none".

    Inputs: logits and labels, of any dtype, with shapes that broadcast.
    Returns: float32: the broadcast shape, or a scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> float(nn.MSELoss()(mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([1.0, 4.0])))
        2.0
    """

    def _elements(self, difference: Tensor) -> Tensor:
        return keras.ops.square(difference)


class L1Loss(_RegressionLoss):
    """Mean absolute error. `reduction`: "mean" or "sum" over all elements, or "none".

    Inputs: logits and labels, of any dtype, with shapes that broadcast.
    Returns: float32: the broadcast shape, or a scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> float(nn.L1Loss()(mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([1.0, 4.0])))
        1.0
    """

    def _elements(self, difference: Tensor) -> Tensor:
        return magnitude(difference)


class MAELoss(LossBase):
    """Mean absolute error: `L1Loss` with the argument name `label`.

    Args: reduction: "mean" or "sum" over all elements, or "none".
    Inputs: logits and label, of any dtype, with shapes that broadcast.
    Returns: float32: the broadcast shape, or a scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> float(nn.MAELoss()(mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([1.0, 4.0])))
        1.0
    """

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        """Compute the loss from predictions and targets."""
        return self.get_loss(magnitude(_difference(self, logits, label)))


class RMSELoss(LossBase):
    """Root mean squared error. Example: ``nn.RMSELoss()(logits, label)``."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        """Compute the loss from predictions and targets."""
        return keras.ops.sqrt(self.get_loss(keras.ops.square(_difference(self, logits, label))))


class SmoothL1Loss(_RegressionLoss):
    """0.5 * d ** 2 / `beta` where the absolute difference d is less than beta, above 0, else d - 0.5 * beta;
    `reduction` as in `MSELoss`, "none" by default.

    Inputs: logits and labels, of any dtype, with shapes that broadcast.
    Returns: float32: the broadcast shape, or a scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.SmoothL1Loss()(mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([1.0, 4.0])).numpy().tolist()
        [0.0, 1.5]

    Source: Girshick, 2015; MindSpore, `mindspore.nn.SmoothL1Loss`.
    """

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.beta = checks.number(self.cls_name, "beta", beta, above=0, example=1.0)

    def _elements(self, difference: Tensor) -> Tensor:
        error = keras.ops.absolute(difference)
        return keras.ops.where(error < self.beta, error * error * (0.5 / self.beta), error - 0.5 * self.beta)


class HuberLoss(_RegressionLoss):
    """0.5 * d ** 2 where the absolute difference d is less than `delta`, above 0, else delta * (d - 0.5 * delta);
    `reduction` as in `MSELoss`.

    Inputs: logits and labels, of any dtype, with shapes that broadcast.
    Returns: float32: the broadcast shape, or a scalar.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> float(nn.HuberLoss("sum")(mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([1.0, 4.0])))
        1.5

    Source: Huber, 1964; MindSpore, `mindspore.nn.HuberLoss`.
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = checks.number(self.cls_name, "delta", delta, above=0, example=1.0)

    def _elements(self, difference: Tensor) -> Tensor:
        error = keras.ops.absolute(difference)
        return keras.ops.where(error < self.delta, error * error * 0.5, self.delta * (error - 0.5 * self.delta))


def _difference(loss: LossBase, logits: Tensor, labels: Tensor) -> Tensor:
    """Return ``logits - labels`` in float32, after checking that they broadcast."""
    logits, labels = as_float32(logits), as_float32(labels)
    _check_broadcast(loss.cls_name, shape_of(logits), shape_of(labels))
    return logits - labels


def _check_broadcast(where: str, logits: Shape, labels: Shape) -> None:
    """Raise if two shapes do not broadcast; warn if both are expanded, as (N, 1) and (N,) are to (N, N)."""
    rank = max(len(logits), len(labels))
    pairs = list(zip((1,) * (rank - len(logits)) + logits, (1,) * (rank - len(labels)) + labels, strict=True))
    if any(a != b and 1 not in (a, b) and None not in (a, b) for a, b in pairs):
        raise ValueError(
            f"{where}: expected labels that broadcast with logits {logits}; got labels {labels}. Write labels of "
            f"shape {logits}."
        )
    if any(a == 1 and b not in (1, None) for a, b in pairs) and any(b == 1 and a not in (1, None) for a, b in pairs):
        warnings.warn(
            f"{where}: logits {logits} and labels {labels} are both stretched to one shape, so each prediction meets "
            f"other samples' labels. Write labels of shape {logits} if that is not meant.",
            stacklevel=2,
        )
