"""`ProximalAdagrad`: Adagrad's step, then one towards zero."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks
from mixtrain.ops.updates import shrunk
from mixtrain.optim.optimizer import Optimizer


class ProximalAdagrad(Optimizer):
    """Adagrad with L1 and L2 penalties that act on the weight: small weights become exactly zero.

    ``s = s + g²``, ``r = lr / sqrt(s)``, ``p = w - r * g``, ``w = sign(p) * max(|p| - r * l1, 0) / (1 + r * l2)``.

    Args:
        params: Parameters or groups; see `Optimizer`.
        accum: What s starts with, at least 0.
        learning_rate: A number, list or schedule; see `Optimizer`.
        l1: Strength of the L1 penalty, at least 0.
        l2: Strength of the L2 penalty, at least 0.
        use_locking: Accepted for MindSpore scripts; without effect.
        loss_scale: What the gradients are divided by.
        weight_decay: L2 penalty, added to the gradient as ``weight_decay * w``.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.zeros(2, np.float32), name="w")
        >>> done = nn.ProximalAdagrad([w], 0.0, 0.5, l1=2.0)((mixtrain.Tensor([4.0, 1.0]),))
        >>> w.asnumpy().tolist() == [-0.25, 0.0]
        True

    Source: Duchi and Singer, 2009; MindSpore, `mindspore.nn.ProximalAdagrad`.
    """

    def __init__(
        self,
        params: Any,
        accum: float = 0.1,
        learning_rate: Any = 0.001,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        start = checks.number("ProximalAdagrad", "accum", accum, at_least=0.0, example=0.1)
        self.l1 = checks.number("ProximalAdagrad", "l1", l1, at_least=0.0, example=0.0)
        self.l2 = checks.number("ProximalAdagrad", "l2", l2, at_least=0.0, example=0.0)
        checks.boolean("ProximalAdagrad", "use_locking", use_locking)
        self.accum = self.parameters.clone("accum", start)

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return the weight after the step."""
        total = self.accum[index].value + gradient * gradient
        self.accum[index].assign(total)
        rate = rate / keras.ops.sqrt(total)
        return shrunk(weight - rate * gradient, rate, self.l1, self.l2)
