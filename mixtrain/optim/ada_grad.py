"""`Adagrad`: steps divided by the root of the sum of all past squared gradients."""

from __future__ import annotations

import keras

from mixtrain import checks
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike, WeightDecayLike
from mixtrain.typing import Tensor


class Adagrad(Optimizer):
    """Adagrad: ``s = s + g²``, ``w = w - lr * g / sqrt(s)``.

    Args:
        params, learning_rate, loss_scale, weight_decay: As in `Optimizer`.
        accum: Initial value of s, at least 0.
        update_slots: Whether s is updated; with False it stays at `accum`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.zeros(1, np.float32), name="w")
        >>> done = nn.Adagrad([w], accum=0.0, learning_rate=0.5)((mixtrain.Tensor([3.0]),))
        >>> w.asnumpy().tolist()
        [-0.5]

    Source: Duchi et al., 2011; MindSpore, `mindspore.nn.Adagrad`.
    """

    def __init__(
        self, params: ParamsLike, accum: float = 0.1, learning_rate: LearningRateLike = 0.001,
        update_slots: bool = True, loss_scale: float = 1.0, weight_decay: WeightDecayLike = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        initial = checks.number("Adagrad", "accum", accum, at_least=0.0, example=0.1)
        self.update_slots = checks.boolean("Adagrad", "update_slots", update_slots)
        self.accum = self.parameters.clone("accum", initial)

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        accum = self.accum[index]
        if self.update_slots:
            accum.assign(accum.value + gradient * gradient)
        return weight - rate * gradient / keras.ops.sqrt(accum.value)
