"""`ASGD`: gradient descent with a decaying rate, and the running average of its weights."""

from __future__ import annotations

import keras
import numpy as np

from mixtrain import checks
from mixtrain.common.parameter import Parameter, ParameterTuple
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike, WeightDecayLike
from mixtrain.typing import Tensor


class ASGD(Optimizer):
    """Averaged SGD: ``w = w * (1 - lambd * eta) - eta * g``, ``ax = ax + mu * (w - ax)``.

    After step t, ``eta = lr / (1 + lambd * lr * t)^alpha`` and ``mu = 1 / max(1, t - t0)``. Averaging starts after step
    t0; until then ax equals the weight.

    Args:
        params, learning_rate, weight_decay: As in `Optimizer`.
        lambd: Decay rate of the weights.
        alpha: Exponent of the decay of eta.
        t0: Step after which weights are averaged.

    Attributes:
        ax: Averaged weights, one Parameter per weight.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.zeros(1, np.float32), name="w")
        >>> done = nn.ASGD([w], learning_rate=0.5)((mixtrain.Tensor([3.0]),))
        >>> w.asnumpy().tolist()
        [-1.5]

    Source: Polyak and Juditsky, 1992; MindSpore, `mindspore.nn.ASGD`.
    """

    def __init__(
        self, params: ParamsLike, learning_rate: LearningRateLike = 0.1, lambd: float = 1e-4, alpha: float = 0.75,
        t0: float = 1e6, weight_decay: WeightDecayLike = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.lambd = checks.number("ASGD", "lambd", lambd, example=1e-4)
        self.alpha = checks.number("ASGD", "alpha", alpha, example=0.75)
        self.t0 = checks.number("ASGD", "t0", t0, example=1e6)
        self.mu, self.eta = self._scalars("mu", 1.0), self._scalars("eta", 0.0)
        self.ax = self.parameters.clone("ax_", "zeros")

    def _scalars(self, prefix: str, value: float) -> ParameterTuple:
        """Create one scalar slot per parameter."""
        return ParameterTuple(
            [Parameter(np.float32(value), f"{prefix}_{name}", requires_grad=False) for name in self.parameters.names]
        )

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        step = keras.ops.cast(self.global_step.value[0] + 1, "float32")
        eta = keras.ops.where(step == 1.0, rate, self.eta[index].value)
        weight = weight * (1.0 - self.lambd * eta) - eta * gradient
        average, mu = self.ax[index].value, self.mu[index].value
        self.ax[index].assign(keras.ops.where(mu == 1.0, weight, average + mu * (weight - average)))
        self.eta[index].assign(rate / keras.ops.power(1.0 + self.lambd * rate * step, self.alpha))
        self.mu[index].assign(1.0 / keras.ops.maximum(1.0, step - self.t0))
        return weight
