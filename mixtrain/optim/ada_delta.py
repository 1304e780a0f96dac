"""`Adadelta`: steps scaled by the ratio of past steps to past gradients."""

from __future__ import annotations

import keras

from mixtrain import checks
from mixtrain.optim.adam import running_mean
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike, WeightDecayLike
from mixtrain.typing import Tensor


class Adadelta(Optimizer):
    """Adadelta: ``s = rho * s + (1 - rho) * g²``, ``d = sqrt(u + eps) / sqrt(s + eps) * g``, ``w = w - lr * d``.

    ``u = rho * u + (1 - rho) * d²`` is the running mean square of d.

    Args:
        params, learning_rate, loss_scale, weight_decay: As in `Optimizer`.
        rho: Decay rate of both mean squares, from 0 to 1.
        epsilon: Added under both square roots, above 0.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.zeros(1, np.float32), name="w")
        >>> done = nn.Adadelta([w], rho=0.0, epsilon=1.0)((mixtrain.Tensor([0.75]),))
        >>> round(float(w.asnumpy()[0]), 4)
        -0.6

    Source: Zeiler, "ADADELTA: an adaptive learning rate method", 2012; MindSpore, `mindspore.nn.Adadelta`.
    """

    def __init__(
        self, params: ParamsLike, learning_rate: LearningRateLike = 1.0, rho: float = 0.9, epsilon: float = 1e-6,
        loss_scale: float = 1.0, weight_decay: WeightDecayLike = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.rho = checks.number("Adadelta", "rho", rho, at_least=0.0, at_most=1.0, example=0.9)
        self.epsilon = checks.number("Adadelta", "epsilon", epsilon, above=0.0, example=1e-6)
        self.accum = self.parameters.clone("accum", "zeros")
        self.accum_update = self.parameters.clone("accum_update", "zeros")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        mean_square = running_mean(self.accum[index], gradient * gradient, self.rho)
        rms_update = keras.ops.sqrt(self.accum_update[index].value + self.epsilon)
        delta = rms_update / keras.ops.sqrt(mean_square + self.epsilon) * gradient
        running_mean(self.accum_update[index], delta * delta, self.rho)
        return weight - rate * delta
