"""`AdaMax`: the variant of Adam based on the infinity norm."""

from __future__ import annotations

import keras
import numpy as np

from mixtrain import checks
from mixtrain.common.parameter import Parameter
from mixtrain.optim.adam import decay_rate, running_mean
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike, WeightDecayLike
from mixtrain.optim.optimizer_cell import map_unique
from mixtrain.typing import Tensor


class AdaMax(Optimizer):
    """AdaMax: ``m = b1 * m + (1 - b1) * g``, ``v = max(b2 * v, |g|)``, ``w = w - lr / (1 - b1^t) * m / (v + eps)``.

    Args:
        params, learning_rate, weight_decay, loss_scale: As in `Optimizer`.
        beta1, beta2: Decay rates of the first moment and of the infinity norm v, between 0 and 1.
        eps: Added to the denominator, above 0.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.zeros(1, np.float32), name="w")
        >>> done = nn.AdaMax([w], learning_rate=0.5)((mixtrain.Tensor([3.0]),))
        >>> round(float(w.asnumpy()[0]), 4)
        -0.5

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015; MindSpore, `mindspore.nn.AdaMax`.
    """

    def __init__(
        self, params: ParamsLike, learning_rate: LearningRateLike = 0.001, beta1: float = 0.9, beta2: float = 0.999,
        eps: float = 1e-8, weight_decay: WeightDecayLike = 0.0, loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.beta1, self.beta2 = decay_rate("AdaMax", "beta1", beta1), decay_rate("AdaMax", "beta2", beta2)
        self.eps = checks.number("AdaMax", "eps", eps, above=0.0, example=1e-8)
        self.beta1_power = Parameter(np.ones(1, np.float32), "beta1_power", requires_grad=False)
        self.moment1 = self.parameters.clone("moment1", "zeros")
        self.moment2 = self.parameters.clone("moment2", "zeros")

    def step_sizes(self) -> list[Tensor]:
        """Return the learning rate of each parameter, with the bias correction of the first moment."""
        rates = super().step_sizes()
        power = self.beta1_power.value * self.beta1
        self.beta1_power.assign(power)
        return map_unique(lambda rate: rate / (1.0 - power[0]), rates)

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        mean = running_mean(self.moment1[index], gradient, self.beta1)
        infinity_norm = keras.ops.maximum(self.moment2[index].value * self.beta2, keras.ops.abs(gradient))
        self.moment2[index].assign(infinity_norm)
        return weight - rate * mean / (infinity_norm + self.eps)
