"""`FTRL`: follow the regularized leader, which yields sparse weights."""

from __future__ import annotations

import keras

from mixtrain import checks
from mixtrain.optim.optimizer import Optimizer, ParamsLike, WeightDecayLike
from mixtrain.typing import Tensor


class FTRL(Optimizer):
    """FTRL-proximal: ``n' = n + g²``, ``z = z + g - (n'^-p - n^-p) / lr * w`` with p = `lr_power`, and then
    ``w = (sign(z) * l1 - z) / (n'^-p / lr + 2 * l2)`` where ``|z| > l1``, else 0.

    Args:
        loss_scale, weight_decay: As in `Optimizer`.
        params: Parameters or groups without rates; see `Optimizer`. Weight decay applies to all, whatever their names.
        initial_accum: Initial value of n, at least 0.
        learning_rate: A number above 0; lists and schedules are not supported.
        lr_power: Exponent of the learning rate's decay, at most 0.
        l1, l2: L1 and L2 penalties, at least 0.
        use_locking: Accepted, without effect.

    Raises: ValueError: An argument is out of range, or the learning rate changes or differs between groups.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.zeros(1, np.float32), name="w")
        >>> done = nn.FTRL([w], initial_accum=0.0, learning_rate=0.5)((mixtrain.Tensor([3.0]),))
        >>> w.asnumpy().tolist()
        [-0.5]

    Source: McMahan et al., "Ad click prediction: a view from the trenches", 2013; MindSpore, `mindspore.nn.FTRL`.
    """

    def __init__(
        self, params: ParamsLike, initial_accum: float = 0.1, learning_rate: float = 0.001, lr_power: float = -0.5,
        l1: float = 0.0, l2: float = 0.0, use_locking: bool = False, loss_scale: float = 1.0,
        weight_decay: WeightDecayLike = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if self.dynamic_lr or self.is_group_lr:
            raise checks.fail_value(
                "FTRL", "learning_rate must be one number", "a changing rate, or one of a group", "learning_rate=0.001"
            )
        checks.number("FTRL", "learning_rate", learning_rate, above=0.0, example=0.001)
        initial = checks.number("FTRL", "initial_accum", initial_accum, at_least=0.0, example=0.1)
        self.lr_power = checks.number("FTRL", "lr_power", lr_power, at_most=0.0, example=-0.5)
        self.l1 = checks.number("FTRL", "l1", l1, at_least=0.0)
        self.l2 = checks.number("FTRL", "l2", l2, at_least=0.0)
        checks.boolean("FTRL", "use_locking", use_locking)
        self.moments = self.parameters.clone("moments", initial)
        self.linear = self.parameters.clone("linear", "zeros")
        if not self.is_group:
            self.decay_flags = (True,) * len(self.parameters)

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        moment, linear = self.moments[index], self.linear[index]
        new_moment = moment.value + gradient * gradient
        power = keras.ops.power(new_moment, -self.lr_power)
        new_linear = linear.value + (gradient - (power - keras.ops.power(moment.value, -self.lr_power)) / rate * weight)
        moment.assign(new_moment)
        linear.assign(new_linear)
        new_weight = (keras.ops.sign(new_linear) * self.l1 - new_linear) / (power / rate + 2.0 * self.l2)
        return keras.ops.where(keras.ops.abs(new_linear) > self.l1, new_weight, keras.ops.zeros_like(new_weight))
