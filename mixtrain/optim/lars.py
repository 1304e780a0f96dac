"""`LARS`: layer-wise adaptive rate scaling of another optimizer's gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import checks
from mixtrain.optim.length import l2_norm
from mixtrain.optim.optimizer import Optimizer
from mixtrain.typing import Tensor, Variable


def _neither_norm_nor_bias(parameter: Variable) -> bool:
    return "LayerNorm" not in parameter.name and "bias" not in parameter.name


class LARS(Optimizer):
    """Layer-wise adaptive rate scaling of the gradients of an inner optimizer.

    The inner optimizer receives ``coefficient * |w| / (|g| + wd * |w| + epsilon) * (g + wd * w)``. wd is its weight
    decay, which it then does not apply itself. Parameters that `lars_filter` excludes keep their gradients, without
    weight decay.

    Args:
        optimizer: The inner optimizer, such as `Momentum`.
        epsilon: Added to the denominator.
        coefficient: Trust coefficient: the norm of a step relative to that of the weight.
        use_clip: Whether the factor is divided by the learning rate and clipped to at most 1.
        lars_filter: Function of a parameter that returns whether it is scaled; by default all are whose name contains
            neither "LayerNorm" nor "bias".

    Raises: ValueError: With `use_clip`, the optimizer has groups with dynamic learning rates.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.array([3.0, 4.0], np.float32), name="w")
        >>> done = nn.LARS(nn.SGD([w], 1.0), coefficient=0.1)((mixtrain.Tensor([0.0, 2.0]),))
        >>> [round(value, 4) for value in w.asnumpy().tolist()]
        [3.0, 3.5]

    Source: You et al., "Large batch training of convolutional networks", 2017; MindSpore, `mindspore.nn.LARS`.
    """

    def __init__(
        self, optimizer: Optimizer, epsilon: float = 1e-5, coefficient: float = 0.001, use_clip: bool = False,
        lars_filter: Callable[[Variable], bool] = _neither_norm_nor_bias,
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
        self._adopt(optimizer)

    def _adopt(self, optimizer: Optimizer) -> None:
        """Share the rates, weight decays and step count of the inner optimizer, and leave it only its update rule."""
        del self.learning_rate
        self.learning_rate, self.is_group_lr = optimizer.learning_rate, optimizer.is_group_lr
        object.__setattr__(self, "_default_lr", optimizer._default_lr)
        self.global_step, self.dynamic_lr = optimizer.global_step, optimizer.dynamic_lr
        self.weight_decay, self.is_group = optimizer.weight_decay, optimizer.is_group
        self._decays, self.decay_flags = optimizer._decays, optimizer.decay_flags
        optimizer.exec_weight_decay = optimizer.need_scale = False
        optimizer.decay_flags = (False,) * len(self.parameters)

    def construct(self, gradients: Sequence[Tensor]) -> Any:
        """Undo the loss scale, rescale the gradients, and run the inner optimizer."""
        rates = self.step_sizes()
        rows = enumerate(self.scale_grad(gradients))
        return self.opt(tuple(self._rescale(index, gradient, rates[index]) for index, gradient in rows))

    def _rescale(self, index: int, gradient: Tensor, rate: Tensor) -> Tensor:
        if not self.lars_flag[index]:
            return gradient
        weight = keras.ops.cast(self.parameters[index].value, gradient.dtype)
        decay = self._unscaled_decay(index) if self.decay_flags[index] else 0.0
        norm = l2_norm(weight)
        factor = self.coefficient * norm / (l2_norm(gradient) + decay * norm + self.epsilon)
        if self.use_clip:
            factor = keras.ops.clip(factor / rate, 0.0, 1.0)
        return factor * (gradient + decay * weight)
