"""`MSELoss`, `L1Loss`, `SmoothL1Loss` and their kin: how far numbers are from their targets."""

from __future__ import annotations

import warnings
from typing import Any

import keras

from mixtrain import checks
from mixtrain.nn.loss.base import LossBase, as_float32
from mixtrain.nn.loss.labels import Shape, shape_of


class _Distance(LossBase):
    """A loss of the differences between two tensors that broadcast."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss of predictions and targets."""
        return self.get_loss(self._distance(_difference(self, logits, labels)))

    def _distance(self, difference: Any) -> Any:
        raise NotImplementedError(f"{self.cls_name}: a subclass must define _distance(self, difference).")


class MSELoss(_Distance):
    """The squared difference.

    Args:
        reduction: "mean" or "sum" over all elements, or "none".

    Inputs:
        logits and labels, of any dtype, with shapes that broadcast.

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
        logits and labels, of any dtype, with shapes that broadcast.

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


class MAELoss(LossBase):
    """The absolute difference; `L1Loss` by another name.

    Args:
        reduction: "mean" or "sum" over all elements, or "none".

    Inputs:
        logits and label, of any dtype, with shapes that broadcast.

    Returns:
        float32: the broadcast shape, or a scalar.

    Raises:
        ValueError: The shapes do not broadcast.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> float(nn.MAELoss()(mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([1.0, 4.0])))
        1.0

    Source: MindSpore, `mindspore.nn.MAELoss`.
    """

    def construct(self, logits: Any, label: Any) -> Any:
        """Return the loss of predictions and targets."""
        return self.get_loss(keras.ops.absolute(_difference(self, logits, label)))


class RMSELoss(LossBase):
    """The root of the mean squared difference. Example: ``nn.RMSELoss()(logits, label)``.

    Source: MindSpore, `mindspore.nn.RMSELoss`.
    """

    def __init__(self) -> None:
        super().__init__()

    def construct(self, logits: Any, label: Any) -> Any:
        """Return the loss of predictions and targets."""
        return keras.ops.sqrt(self.get_loss(keras.ops.square(_difference(self, logits, label))))


class SmoothL1Loss(_Distance):
    """Half the squared difference over beta where the difference is less than beta, else the difference less beta / 2.

    Args:
        beta: Where the square ends and the straight line begins.
        reduction: "mean" or "sum" over all elements, or "none", which is the default.

    Inputs:
        logits and labels, of any dtype, with shapes that broadcast.

    Returns:
        float32: the broadcast shape, or a scalar.

    Raises:
        ValueError: `beta` is not positive, or the shapes do not broadcast.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.SmoothL1Loss()(mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([1.0, 4.0])).numpy().tolist()
        [0.0, 1.5]

    Source: Girshick, 2015; MindSpore, `mindspore.nn.SmoothL1Loss`.
    """

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.beta = checks.number(self.cls_name, "beta", beta, above=0, example=1.0)

    def _distance(self, difference: Any) -> Any:
        far = keras.ops.absolute(difference)
        return keras.ops.where(far < self.beta, far * far * (0.5 / self.beta), far - 0.5 * self.beta)


class HuberLoss(_Distance):
    """Half the squared difference where the difference is less than delta, else delta * (the difference - delta / 2).

    Args:
        reduction: "mean" or "sum" over all elements, or "none".
        delta: Where the square ends and the straight line begins.

    Inputs:
        logits and labels, of any dtype, with shapes that broadcast.

    Returns:
        float32: the broadcast shape, or a scalar.

    Raises:
        ValueError: `delta` is not positive, or the shapes do not broadcast.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> float(nn.HuberLoss("sum")(mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([1.0, 4.0])))
        1.5

    Source: Huber, 1964; MindSpore, `mindspore.nn.HuberLoss`.
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = checks.number(self.cls_name, "delta", delta, above=0, example=1.0)

    def _distance(self, difference: Any) -> Any:
        far = keras.ops.absolute(difference)
        return keras.ops.where(far < self.delta, far * far * 0.5, self.delta * (far - 0.5 * self.delta))


def _difference(loss: LossBase, logits: Any, labels: Any) -> Any:
    """Return the difference in float32 of two tensors that broadcast."""
    logits, labels = as_float32(logits), as_float32(labels)
    _check_broadcast(loss.cls_name, shape_of(logits), shape_of(labels))
    return logits - labels


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
