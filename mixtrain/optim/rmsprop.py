"""`RMSProp`: steps divided by the root of a running mean of squared gradients."""

from __future__ import annotations

import keras

from mixtrain import checks
from mixtrain.optim.adam import running_mean
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike, WeightDecayLike
from mixtrain.typing import Tensor


class RMSProp(Optimizer):
    """RMSProp: ``s = decay * s + (1 - decay) * g²``, ``m = momentum * m + lr * g / sqrt(s + eps)``, ``w = w - m``.

    s starts at 1. With `centered`, the square of a running mean of g is subtracted from s under the root.

    Args:
        params, learning_rate, loss_scale, weight_decay: As in `Optimizer`.
        decay: Decay rate of the running means, at least 0.
        momentum: Momentum, at least 0.
        epsilon: Added under the square root, above 0.
        use_locking: Accepted, without effect.
        centered: Whether to divide by the root of the variance of g instead of its mean square.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.zeros(1, np.float32), name="w")
        >>> done = nn.RMSProp([w], learning_rate=0.5, decay=0.0)((mixtrain.Tensor([3.0]),))
        >>> w.asnumpy().tolist()
        [-0.5]

    Source: Tieleman and Hinton, 2012; MindSpore, `mindspore.nn.RMSProp`.
    """

    def __init__(
        self, params: ParamsLike, learning_rate: LearningRateLike = 0.1, decay: float = 0.9, momentum: float = 0.0,
        epsilon: float = 1e-10, use_locking: bool = False, centered: bool = False, loss_scale: float = 1.0,
        weight_decay: WeightDecayLike = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.decay = checks.number("RMSProp", "decay", decay, at_least=0.0, example=0.9)
        self.momentum = checks.number("RMSProp", "momentum", momentum, at_least=0.0, example=0.9)
        self.epsilon = checks.number("RMSProp", "epsilon", epsilon, above=0.0, example=1e-10)
        checks.boolean("RMSProp", "use_locking", use_locking)
        self.centered = checks.boolean("RMSProp", "centered", centered)
        if self.centered:
            self.mg = self.parameters.clone("mean_grad", "zeros")
        self.ms = self.parameters.clone("mean_square", "ones")
        self.moment = self.parameters.clone("moment", "zeros")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        mean_square = running_mean(self.ms[index], gradient * gradient, self.decay)
        if self.centered:
            mean = running_mean(self.mg[index], gradient, self.decay)
            mean_square = mean_square - mean * mean
        moment = self.moment[index]
        new = moment.value * self.momentum + rate * gradient / keras.ops.sqrt(mean_square + self.epsilon)
        moment.assign(new)
        return weight - new
