"""`ProximalAdagrad`: an Adagrad step followed by a proximal step of the L1 and L2 penalties."""

from __future__ import annotations

import keras

from mixtrain import checks
from mixtrain.ops.updates import soft_threshold
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike, WeightDecayLike
from mixtrain.typing import Tensor


class ProximalAdagrad(Optimizer):
    """Adagrad with proximal L1 and L2 regularization, under which small weights become exactly zero.

    ``s = s + g²``, ``r = lr / sqrt(s)``, ``p = w - r * g``, ``w = sign(p) * max(|p| - r * l1, 0) / (1 + r * l2)``.

    Args:
        params, learning_rate, loss_scale, weight_decay: As in `Optimizer`.
        accum: Initial value of s, at least 0.
        l1, l2: L1 and L2 penalties, at least 0.
        use_locking: Accepted, without effect.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.zeros(2, np.float32), name="w")
        >>> done = nn.ProximalAdagrad([w], 0.0, 0.5, l1=2.0)((mixtrain.Tensor([4.0, 1.0]),))
        >>> w.asnumpy().tolist() == [-0.25, 0.0]
        True

    Source: Duchi and Singer, 2009; MindSpore, `mindspore.nn.ProximalAdagrad`.
    """

    def __init__(
        self, params: ParamsLike, accum: float = 0.1, learning_rate: LearningRateLike = 0.001, l1: float = 0.0,
        l2: float = 0.0, use_locking: bool = False, loss_scale: float = 1.0, weight_decay: WeightDecayLike = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        initial = checks.number("ProximalAdagrad", "accum", accum, at_least=0.0, example=0.1)
        self.l1 = checks.number("ProximalAdagrad", "l1", l1, at_least=0.0, example=0.0)
        self.l2 = checks.number("ProximalAdagrad", "l2", l2, at_least=0.0, example=0.0)
        checks.boolean("ProximalAdagrad", "use_locking", use_locking)
        self.accum = self.parameters.clone("accum", initial)

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        accum = self.accum[index].value + gradient * gradient
        self.accum[index].assign(accum)
        rate = rate / keras.ops.sqrt(accum)
        return soft_threshold(weight - rate * gradient, rate, self.l1, self.l2)
