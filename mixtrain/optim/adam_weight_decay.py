"""`AdamWeightDecay`: Adam with decoupled weight decay and without bias correction."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import checks
from mixtrain.optim.adam import decay_rate, running_mean
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike, WeightDecayLike
from mixtrain.typing import Tensor


class AdamWeightDecay(Optimizer):
    """Adam as used by BERT: ``w = w - lr * (m / (sqrt(v) + eps) + weight_decay * w)``, without bias correction.

    Args:
        params, learning_rate, beta1, beta2, eps: As in `Adam`.
        weight_decay: Decoupled weight decay, multiplied by the learning rate; a number or a Cell of the step.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.ones(1, np.float32), name="w")
        >>> done = nn.AdamWeightDecay([w], learning_rate=0.5, weight_decay=0.5)((mixtrain.Tensor([0.0]),))
        >>> w.asnumpy().tolist()
        [0.75]

    Source: Loshchilov and Hutter, 2019; MindSpore, `mindspore.nn.AdamWeightDecay`.
    """

    def __init__(
        self, params: ParamsLike, learning_rate: LearningRateLike = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
        eps: float = 1e-6, weight_decay: WeightDecayLike = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        where = "AdamWeightDecay"
        self.beta1, self.beta2 = decay_rate(where, "beta1", beta1), decay_rate(where, "beta2", beta2)
        self.eps = checks.number(where, "eps", eps, above=0.0, example=1e-6)
        self.moments1 = self.parameters.clone("adam_m", "zeros")
        self.moments2 = self.parameters.clone("adam_v", "zeros")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        """Apply the rule to each parameter; the gradients are neither decayed nor unscaled."""
        return self.apply_updates(gradients)

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        mean = running_mean(self.moments1[index], gradient, self.beta1)
        mean_square = running_mean(self.moments2[index], gradient * gradient, self.beta2)
        direction = mean / (keras.ops.sqrt(mean_square) + self.eps)
        if self.decay_flags[index]:
            direction = direction + weight * self._unscaled_decay(index)
        return weight - direction * rate
