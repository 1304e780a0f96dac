"""`Momentum`: gradient descent with momentum."""

from __future__ import annotations

import keras
import numpy as np

from mixtrain import checks
from mixtrain.common.parameter import Parameter
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike, WeightDecayLike
from mixtrain.typing import Tensor


class Momentum(Optimizer):
    """Gradient descent with momentum: ``v = momentum * v + g``, ``w = w - lr * v``.

    With `use_nesterov`, ``w = w - lr * (g + momentum * v)`` with the new v. (MindSpore documents the same; its CPU
    kernel uses the old v there, which is plain momentum.)

    Args:
        params, learning_rate, weight_decay, loss_scale: As in `Optimizer`.
        momentum: Momentum, at least 0; a scalar Parameter of the optimizer, which a script may assign between steps.
        use_nesterov: Whether to use Nesterov momentum.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.ones(1, np.float32), name="w")
        >>> optimizer = nn.Momentum([w], learning_rate=0.5, momentum=0.5)
        >>> for _ in range(2):
        ...     done = optimizer((mixtrain.Tensor([1.0]),))
        >>> w.asnumpy().tolist()
        [-0.25]

    Source: Sutskever et al., 2013; MindSpore, `mindspore.nn.Momentum`.
    """

    def __init__(
        self, params: ParamsLike, learning_rate: LearningRateLike, momentum: float, weight_decay: WeightDecayLike = 0.0,
        loss_scale: float = 1.0, use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.momentum = momentum_parameter("Momentum", momentum)
        self.use_nesterov = checks.boolean("Momentum", "use_nesterov", use_nesterov)
        self.moments = self.parameters.clone("moments", "zeros")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        moment = self.moments[index]
        momentum = keras.ops.cast(self.momentum.value, gradient.dtype)
        new = moment.value * momentum + gradient
        moment.assign(new)
        direction = gradient + new * momentum if self.use_nesterov else new
        return weight - direction * rate


def momentum_parameter(where: str, momentum: float) -> Parameter:
    """Return the Parameter of a momentum, checked."""
    value = checks.number(where, "momentum", momentum, at_least=0.0, example=0.9)
    return Parameter(np.float32(value), "momentum", requires_grad=False)
