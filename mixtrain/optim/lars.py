"""`LARS`: an optimizer's gradients, made as long as each weight allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from mixtrain import checks
from mixtrain.optim.length import length
from mixtrain.optim.optimizer import Optimizer


def _neither_norm_nor_bias(parameter: Any) -> bool:
    return "LayerNorm" not in parameter.name and "bias" not in parameter.name


class LARS(Optimizer):
    """Layer-wise rates: the optimizer inside gets ``coefficient * |w| / (|g| + wd * |w| + epsilon) * (g + wd * w)``.

    wd is its weight decay, which it does not apply itself then. Parameters that `lars_filter` leaves out get their
    gradients as they are, without decay.

    Args:
        optimizer: The optimizer inside, such as `Momentum`.
        epsilon: Added to the denominator.
        coefficient: How far a step may go, as a share of the weight.
        use_clip: Whether the factor divided by the learning rate is at most 1, and takes the factor's place.
        lars_filter: Says for a parameter whether it is treated; by default not where its name holds "LayerNorm" or
            "bias".

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: With `use_clip`, groups of the optimizer have rates that change.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.array([3.0, 4.0], np.float32), name="w")
        >>> done = nn.LARS(nn.SGD([w], 1.0), coefficient=0.1)((mixtrain.Tensor([0.0, 2.0]),))
        >>> [round(value, 4) for value in w.asnumpy().tolist()]
        [3.0, 3.5]

    Source: You et al., "Large batch training of convolutional networks", 2017; MindSpore, `mindspore.nn.LARS`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        epsilon: float = 1e-5,
        coefficient: float = 0.001,
        use_clip: bool = False,
        lars_filter: Callable[[Any], bool] = _neither_norm_nor_bias,
    ) -> None:
        checks.instance("LARS", "optimizer", optimizer, Optimizer, "LARS(nn.Momentum(params, 0.1, 0.9))")
        super().__init__(0.0, optimizer.parameters, loss_scale=optimizer.loss_scale)
        self.epsilon = checks.number("LARS", "epsilon", epsilon, example=1e-5)
        self.coefficient = checks.number("LARS", "coefficient", coefficient, example=0.001)
        self.use_clip = checks.boolean("LARS", "use_clip", use_clip)
        if self.use_clip and optimizer.is_group_lr and optimizer.dynamic_lr:
            raise checks.fail_value(
                "LARS", "with use_clip, groups must not have rates that change", "a list or schedule", "use_clip=False"
            )
        self.lars_flag = tuple(bool(lars_filter(parameter)) for parameter in self.parameters)
        self.opt = optimizer
        self._take_over(optimizer)

    def _take_over(self, optimizer: Optimizer) -> None:
        """Read the rates, decays and step count of the optimizer inside, and leave it only its rule."""
        del self.learning_rate
        self.learning_rate, self.is_group_lr = optimizer.learning_rate, optimizer.is_group_lr
        object.__setattr__(self, "_own_rate", optimizer._own_rate)
        self.global_step, self.dynamic_lr = optimizer.global_step, optimizer.dynamic_lr
        self.weight_decay, self.is_group = optimizer.weight_decay, optimizer.is_group
        self._decays, self.decay_flags = optimizer._decays, optimizer.decay_flags
        optimizer.exec_weight_decay = optimizer.need_scale = False
        optimizer.decay_flags = (False,) * len(self.parameters)

    def construct(self, gradients: Any) -> Any:
        """Undo the loss scale, give each gradient its length, and run the optimizer inside."""
        rates = self.step_sizes()
        rows = enumerate(self.scale_grad(gradients))
        return self.opt(tuple(self._sized(index, gradient, rates[index]) for index, gradient in rows))

    def _sized(self, index: int, gradient: Any, rate: Any) -> Any:
        if not self.lars_flag[index]:
            return gradient
        weight = keras.ops.cast(self.parameters[index].value, gradient.dtype)
        decay = self._decay(self._decays[index]) if self.decay_flags[index] else 0.0
        long = length(weight)
        factor = self.coefficient * long / (length(gradient) + decay * long + self.epsilon)
        if self.use_clip:
            factor = keras.ops.clip(factor / rate, 0.0, 1.0)
        return factor * (gradient + decay * weight)
