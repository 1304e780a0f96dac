"""`Adam` and `AdamOffload`: adaptive moment estimation."""

from __future__ import annotations

import keras
import numpy as np

from mixtrain import checks
from mixtrain.common.parameter import Parameter
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike, WeightDecayLike
from mixtrain.optim.optimizer_cell import map_unique
from mixtrain.typing import Tensor


class Adam(Optimizer):
    """Adam: ``m = b1 * m + (1 - b1) * g``, ``v = b2 * v + (1 - b2) * g²``, ``w = w - lr_t * m / (sqrt(v) + eps)``.

    ``lr_t = lr * sqrt(1 - b2^t) / (1 - b1^t)`` at step t = 1, 2, ...; eps is the paper's epsilon-hat, outside the bias
    correction.

    Args:
        params, learning_rate, weight_decay, loss_scale: As in `Optimizer`.
        beta1, beta2: Decay rates of the moments m and v, between 0 and 1.
        eps: Added to the denominator, above 0.
        use_nesterov: Whether ``b1 * m + (1 - b1) * g`` replaces m in the step.
        use_amsgrad: Whether the maximum of all v so far replaces v in the step; `use_nesterov` then has no effect.
        use_locking, use_lazy, use_offload: Accepted, without effect; gradients are made dense.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.zeros(1, np.float32), name="w")
        >>> done = nn.Adam([w], learning_rate=0.5)((mixtrain.Tensor([3.0]),))
        >>> round(float(w.asnumpy()[0]), 4)
        -0.5

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015; MindSpore, `mindspore.nn.Adam`.
    """

    def __init__(
        self, params: ParamsLike, learning_rate: LearningRateLike = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
        eps: float = 1e-8, use_locking: bool = False, use_nesterov: bool = False, weight_decay: WeightDecayLike = 0.0,
        loss_scale: float = 1.0, use_amsgrad: bool = False, *, use_lazy: bool = False, use_offload: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.beta1, self.beta2 = decay_rate("Adam", "beta1", beta1), decay_rate("Adam", "beta2", beta2)
        self.eps = checks.number("Adam", "eps", eps, above=0.0, example=1e-8)
        self.use_nesterov = checks.boolean("Adam", "use_nesterov", use_nesterov)
        self.use_amsgrad = checks.boolean("Adam", "use_amsgrad", use_amsgrad)
        for name, value in (("use_locking", use_locking), ("use_lazy", use_lazy), ("use_offload", use_offload)):
            checks.boolean("Adam", name, value)
        if use_lazy + use_offload + use_amsgrad > 1:
            chosen = {"use_lazy": use_lazy, "use_offload": use_offload, "use_amsgrad": use_amsgrad}
            raise checks.fail_value("Adam", "at most one may be True", chosen, "one of them")
        self.beta1_power = Parameter(np.float32(1.0), "beta1_power", requires_grad=False)
        self.beta2_power = Parameter(np.float32(1.0), "beta2_power", requires_grad=False)
        self.moment1 = self.parameters.clone("moment1", "zeros")
        self.moment2 = self.parameters.clone("moment2", "zeros")
        if self.use_amsgrad:
            self.vhat = self.parameters.clone("vhat", "zeros")

    def step_sizes(self) -> list[Tensor]:
        """Return the learning rate of each parameter with the bias correction of the moments."""
        rates = super().step_sizes()
        power1 = self.beta1_power.value * self.beta1
        power2 = self.beta2_power.value * self.beta2
        self.beta1_power.assign(power1)
        self.beta2_power.assign(power2)
        correction = keras.ops.sqrt(1.0 - power2) / (1.0 - power1)
        return map_unique(lambda rate: rate * correction, rates)

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        mean = running_mean(self.moment1[index], gradient, self.beta1)
        mean_square = running_mean(self.moment2[index], gradient * gradient, self.beta2)
        if self.use_amsgrad:
            mean_square = keras.ops.maximum(self.vhat[index].value, mean_square)
            self.vhat[index].assign(mean_square)
        elif self.use_nesterov:
            mean = mean * self.beta1 + gradient * one_minus(self.beta1)
        return weight - mean * rate / (keras.ops.sqrt(mean_square) + self.eps)


class AdamOffload(Adam):
    """`Adam` under the name of MindSpore's host-side variant; here it runs on the device of the weights.

    Args: params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale: As in `Adam`.

    Example: ``nn.AdamOffload(net.trainable_params())``.
    """

    def __init__(
        self, params: ParamsLike, learning_rate: LearningRateLike = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
        eps: float = 1e-8, use_locking: bool = False, use_nesterov: bool = False, weight_decay: WeightDecayLike = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale)


def decay_rate(where: str, name: str, value: float) -> float:
    """Check that a decay rate is strictly between 0 and 1, and return it."""
    return checks.number(where, name, value, above=0.0, below=1.0, example=0.9)


def one_minus(beta: float) -> float:
    """Return 1 - beta computed in float32."""
    return float(np.float32(1.0) - np.float32(beta))


def running_mean(slot: Parameter, value: Tensor, beta: float) -> Tensor:
    """Set a slot to ``beta * slot + (1 - beta) * value``, and return the new value."""
    old = keras.ops.convert_to_tensor(slot.value)
    new = old * beta + value * one_minus(beta)
    slot.assign(new)
    return new
