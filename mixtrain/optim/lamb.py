"""`Lamb`: Adam whose steps are as long as each weight allows."""

from __future__ import annotations

from typing import Any, Final

import keras

from mixtrain import checks
from mixtrain.dtype import float32
from mixtrain.optim.adam import decay_rate, running_mean
from mixtrain.optim.length import length
from mixtrain.optim.optimizer import Optimizer

_MOST: Final = 10.0


class Lamb(Optimizer):
    """LAMB: ``u = m' / (sqrt(v') + eps) + weight_decay * w``, ``w = w - lr * |w| / |u| * u``.

    m' and v' are running means of g and g², corrected for their start at zero. The ratio ``|w| / |u|`` is at most 10,
    and 1 where one of the two is 0.

    Args:
        params: Parameters or groups; see `Optimizer`.
        learning_rate: A number, list or schedule; see `Optimizer`.
        beta1: Decay of the mean, between 0 and 1.
        beta2: Decay of the mean square, between 0 and 1.
        eps: Added to the denominator, above 0.
        weight_decay: Share of the weight in the step's direction; a number or a Cell of the step.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.array([3.0, 4.0], np.float32), name="w")
        >>> done = nn.Lamb([w], learning_rate=0.1)((mixtrain.Tensor([0.0, 2.0]),))
        >>> [round(value, 4) for value in w.asnumpy().tolist()]
        [3.0, 3.5]

    Source: You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", 2020; MindSpore,
    `mindspore.nn.Lamb`.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.beta1, self.beta2 = decay_rate("Lamb", "beta1", beta1), decay_rate("Lamb", "beta2", beta2)
        self.eps = checks.number("Lamb", "eps", eps, above=0.0, example=1e-6)
        self.moments1 = self.parameters.clone("lamb_m", "zeros")
        self.moments2 = self.parameters.clone("lamb_v", "zeros")

    def construct(self, gradients: Any) -> Any:
        """Apply the rule to each parameter; the gradients are not divided by the loss scale."""
        return self.apply_updates(self.gradients_centralization(gradients))

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return the weight after the step."""
        step = keras.ops.cast(keras.ops.reshape(self.global_step, ()), float32) + 1.0
        mean = running_mean(self.moments1[index], gradient, self.beta1) / (1.0 - self.beta1**step)
        square = running_mean(self.moments2[index], gradient * gradient, self.beta2) / (1.0 - self.beta2**step)
        direction = mean / (keras.ops.sqrt(square) + self.eps)
        if self.decay_flags[index]:
            direction = direction + weight * self._decay(self._decays[index])
        return weight - rate * _trust(weight, direction) * direction


def _trust(weight: Any, direction: Any) -> Any:
    """Return how much longer than its direction a step is."""
    long, wide = length(weight), length(direction)
    known = keras.ops.logical_and(long > 0.0, wide > 0.0)
    ratio = long / keras.ops.where(known, wide, keras.ops.ones_like(wide))
    return keras.ops.where(known, keras.ops.minimum(ratio, _MOST), keras.ops.ones_like(ratio))
