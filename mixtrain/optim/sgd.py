"""`SGD`: gradient descent with optional momentum."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks
from mixtrain.common.parameter import ParameterTuple
from mixtrain.optim.momentum import momentum_parameter
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike, WeightDecayLike
from mixtrain.typing import Tensor


class SGD(Optimizer):
    """Gradient descent: ``w = w - lr * g``; with momentum, ``w = w - lr * v``.

    ``v = g`` in the first step and ``v = momentum * v + (1 - dampening) * g`` after it; with `nesterov`,
    ``w = w - lr * (g + momentum * v)``.

    Args:
        params, learning_rate, loss_scale: As in `Optimizer`.
        momentum: Momentum, at least 0; if above, a scalar Parameter, which a script may assign between steps.
        dampening: Dampening of the momentum, at least 0; has no effect if `momentum` is 0.
        weight_decay: L2 penalty, added to the gradient as ``weight_decay * w``; a number.
        nesterov: Whether to use Nesterov momentum; requires a momentum and no dampening.

    Raises: ValueError: An argument is out of range, or `nesterov` is used without momentum or with dampening.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.ones(2, np.float32), name="w")
        >>> done = nn.SGD([w], learning_rate=0.5)((mixtrain.Tensor([1.0, 0.5]),))
        >>> w.asnumpy().tolist()
        [0.5, 0.75]
    """

    def __init__(
        self, params: ParamsLike, learning_rate: LearningRateLike = 0.1, momentum: float = 0.0, dampening: float = 0.0,
        weight_decay: WeightDecayLike = 0.0, nesterov: bool = False, loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        checked = momentum_parameter("SGD", momentum)
        self.momentum: Any = checked if momentum else 0.0
        self.dampening = checks.number("SGD", "dampening", dampening, at_least=0.0)
        self.nesterov = checks.boolean("SGD", "nesterov", nesterov)
        if self.nesterov and (not momentum or self.dampening != 0.0):
            raise checks.fail_value(
                "SGD", "nesterov needs a momentum above 0 and a dampening of 0",
                f"momentum={momentum}, dampening={self.dampening}",
                "SGD(params, 0.1, momentum=0.9, nesterov=True)",
            )
        if self.dynamic_weight_decay:
            raise checks.fail_type("SGD", "weight_decay must be a number", weight_decay, "weight_decay=1e-4")
        self.accum = self.parameters.clone("accum", "zeros") if momentum else ParameterTuple()

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        if not self.accum:
            return self._without_momentum(weight, gradient, rate)
        accum = self.accum[index]
        momentum = keras.ops.cast(self.momentum.value, gradient.dtype)
        new = accum.value * momentum + self._dampened(gradient)
        accum.assign(new)
        direction = gradient + new * momentum if self.nesterov else new
        return weight - direction * rate

    def _without_momentum(self, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        if not isinstance(self.momentum, float) or self.momentum:
            raise checks.fail_value(
                "SGD", "momentum must be above 0 from the start to be changed later", "0 at first",
                "SGD(params, 0.1, momentum=1e-9)",
            )
        return weight - gradient * rate

    def _dampened(self, gradient: Tensor) -> Tensor:
        """Return the gradient times ``1 - dampening``, but undampened in the first step."""
        if not self.dampening:
            return gradient
        first = keras.ops.equal(keras.ops.reshape(self.global_step, ()), 0)
        return gradient * keras.ops.where(first, 1.0, 1.0 - self.dampening)
