"""`Lamb`: Adam with layer-wise adaptive step sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import keras

from mixtrain import checks
from mixtrain.dtype import float32
from mixtrain.optim.adam import decay_rate, running_mean
from mixtrain.optim.length import l2_norm
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike, WeightDecayLike
from mixtrain.typing import Tensor

_MAX_TRUST_RATIO: Final = 10.0


class Lamb(Optimizer):
    """LAMB: ``u = m' / (sqrt(v') + eps) + weight_decay * w``, ``w = w - lr * |w| / |u| * u``.

    m' and v' are bias-corrected running means of g and g². The trust ratio ``|w| / |u|`` is at most 10, and 1 if either
    norm is 0.

    Args:
        params, learning_rate, beta1, beta2, eps: As in `Adam`.
        weight_decay: Decoupled weight decay, added to the direction; a number or a Cell of the step.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.array([3.0, 4.0], np.float32), name="w")
        >>> done = nn.Lamb([w], learning_rate=0.1)((mixtrain.Tensor([0.0, 2.0]),))
        >>> [round(value, 4) for value in w.asnumpy().tolist()]
        [3.0, 3.5]

    Source: You et al., 2020; MindSpore, `mindspore.nn.Lamb`.
    """

    def __init__(
        self, params: ParamsLike, learning_rate: LearningRateLike, beta1: float = 0.9, beta2: float = 0.999,
        eps: float = 1e-6, weight_decay: WeightDecayLike = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.beta1, self.beta2 = decay_rate("Lamb", "beta1", beta1), decay_rate("Lamb", "beta2", beta2)
        self.eps = checks.number("Lamb", "eps", eps, above=0.0, example=1e-6)
        self.moments1 = self.parameters.clone("lamb_m", "zeros")
        self.moments2 = self.parameters.clone("lamb_v", "zeros")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        """Apply the rule to each parameter; the gradients are not divided by the loss scale."""
        return self.apply_updates(self.gradients_centralization(gradients))

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        step = keras.ops.cast(keras.ops.reshape(self.global_step, ()), float32) + 1.0
        mean = running_mean(self.moments1[index], gradient, self.beta1) / (1.0 - self.beta1**step)
        mean_square = running_mean(self.moments2[index], gradient * gradient, self.beta2) / (1.0 - self.beta2**step)
        direction = mean / (keras.ops.sqrt(mean_square) + self.eps)
        if self.decay_flags[index]:
            direction = direction + weight * self._unscaled_decay(index)
        return weight - rate * _trust_ratio(weight, direction) * direction


def _trust_ratio(weight: Tensor, direction: Tensor) -> Tensor:
    """Return the norm of the weight divided by that of the direction, clipped; 1 if either is 0."""
    weight_norm, direction_norm = l2_norm(weight), l2_norm(direction)
    nonzero = keras.ops.logical_and(weight_norm > 0.0, direction_norm > 0.0)
    ratio = weight_norm / keras.ops.where(nonzero, direction_norm, keras.ops.ones_like(direction_norm))
    return keras.ops.where(nonzero, keras.ops.minimum(ratio, _MAX_TRUST_RATIO), keras.ops.ones_like(ratio))
