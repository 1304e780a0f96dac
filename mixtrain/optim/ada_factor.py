"""`AdaFactor`: adaptive steps with second moments factored into rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import checks
from mixtrain.common.parameter import Parameter, ParameterTuple
from mixtrain.dtype import float16
from mixtrain.optim.adam import running_mean
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike
from mixtrain.optim.optimizer_cell import map_unique
from mixtrain.optim.trained import working_dtype
from mixtrain.typing import Tensor


class AdaFactor(Optimizer):
    """Adafactor: the second moment of a matrix is stored as row and column averages.

    The decay rate of the second moment at step t is ``b = 1 - t^-decay_rate``. With ``s`` the running mean of
    ``g² + eps[0]``, the step is ``u = g / sqrt(s)``, divided by ``max(1, rms(u) / clip_threshold)`` and multiplied by
    the learning rate.

    Args:
        params, loss_scale: As in `Optimizer`.
        learning_rate: A number, list or schedule, see `Optimizer`; None with `relative_step`.
        eps: Number added to squared gradients, and minimum scale of a parameter.
        clip_threshold: Maximum root mean square of a step, before the learning rate is applied.
        decay_rate: Exponent of the second moment's decay rate b, between 0 and 1.
        beta1: Decay rate of the running mean of the steps; 0 or None disables it.
        weight_decay: Decoupled weight decay, multiplied by the learning rate.
        scale_parameter: Whether the rate is multiplied by the root mean square of the parameter.
        relative_step: Whether the rate is ``min(0.01, 1 / sqrt(t))``.
        warmup_init: Whether that rate is at most ``1e-6 * t`` instead of 0.01.
        compression: Whether the second moments of vectors are stored in float16.

    Raises: ValueError: An argument is out of range, or both or none of `learning_rate` and `relative_step` are given.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.ones(1, np.float32), name="w")
        >>> done = nn.AdaFactor([w], 0.5, beta1=0.0, relative_step=False)((mixtrain.Tensor([3.0]),))
        >>> w.asnumpy().tolist()
        [0.5]

    Source: Shazeer and Stern, 2018; MindSpore, `mindspore.nn.AdaFactor`.
    """

    def __init__(
        self, params: ParamsLike, learning_rate: LearningRateLike | None = None,
        eps: tuple[float, float] = (1e-30, 1e-3), clip_threshold: float = 1.0, decay_rate: float = 0.8,
        beta1: float | None = 0.9, weight_decay: float = 0.0, scale_parameter: bool = True, relative_step: bool = True,
        warmup_init: bool = False, compression: bool = False, loss_scale: float = 1.0,
    ) -> None:
        _check_rate(learning_rate, relative_step, warmup_init)
        super().__init__(0.0 if learning_rate is None else learning_rate, params, weight_decay, loss_scale)
        if not isinstance(eps, tuple | list) or len(eps) != 2:
            raise checks.fail_value("AdaFactor", "eps must be two numbers", eps, "eps=(1e-30, 1e-3)")
        if isinstance(weight_decay, (int, float)):
            checks.number("AdaFactor", "weight_decay", weight_decay, at_least=0.0, below=1.0, example=0.01)
        self.eps = tuple(checks.number("AdaFactor", "eps", item, at_least=0.0, example=1e-3) for item in eps)
        self.clip_threshold = checks.number("AdaFactor", "clip_threshold", clip_threshold, above=0.0, example=1.0)
        self.decay_rate = checks.number("AdaFactor", "decay_rate", decay_rate, above=0.0, below=1.0, example=0.8)
        self.beta1 = checks.number("AdaFactor", "beta1", beta1 or 0.0, at_least=0.0, example=0.9)
        # A schedule is used as it is, not scaled by the parameter.
        self.scale_parameter = checks.boolean("AdaFactor", "scale_parameter", scale_parameter) and not self.dynamic_lr
        self.relative_step, self.warmup_init = relative_step, warmup_init
        self.compression = checks.boolean("AdaFactor", "compression", compression)
        if self.beta1:
            self.exp_avg = self.parameters.clone("exp_avg", "zeros")
        shapes = [tuple(parameter.shape) for parameter in self.parameters]
        self.exp_avg_sq_row = self._second_moments("row_", [shape[:-1] if len(shape) > 1 else (1,) for shape in shapes])
        self.exp_avg_sq_col = self._second_moments(
            "col_", [shape[:-2] + shape[-1:] if len(shape) > 1 else (1,) for shape in shapes]
        )
        self.exp_avg_sq = self._second_moments("", [(1,) if len(shape) > 1 else shape for shape in shapes])

    def _second_moments(self, kind: str, shapes: list[tuple[int, ...]]) -> ParameterTuple:
        """Create one slot of zeros per parameter."""
        return ParameterTuple([
            Parameter(
                keras.ops.zeros(shape, float16.name if self.compression and not kind and len(parameter.shape) < 2
                                else working_dtype(parameter).name),
                f"exp_avg_sq_{kind}{name}", requires_grad=False,
            )
            for name, parameter, shape in zip(self.parameters.names, self.parameters, shapes, strict=True)
        ])

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        """Undo the loss scale, and apply the rule to each parameter."""
        return self.apply_updates(self.scale_grad(gradients))

    def step_sizes(self) -> list[Tensor]:
        """Return the learning rate of each parameter, computed from the step with `relative_step`."""
        rates = super().step_sizes()
        if not self.relative_step:
            return rates
        step = self._step()
        max_rate = 1e-6 * step if self.warmup_init else np.float32(1e-2)
        return map_unique(lambda rate: keras.ops.minimum(max_rate, keras.ops.rsqrt(step)), rates)

    def _step(self) -> Tensor:
        """Return the number of the current step, from 1, in float32."""
        return keras.ops.cast(self.global_step.value[0] + 1, "float32")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        decay = 1.0 - keras.ops.power(self._step(), -self.decay_rate)
        square = gradient * gradient + self.eps[0]
        if len(weight.shape) > 1:
            row = _update_average(self.exp_avg_sq_row[index], keras.ops.mean(square, -1), decay)
            column = _update_average(self.exp_avg_sq_col[index], keras.ops.mean(square, -2), decay)
            # The factored second moment is the outer product of both, divided by the mean of the rows.
            row = row / keras.ops.mean(row, -1, keepdims=True)
            delta = gradient * keras.ops.rsqrt(row)[..., None] * keras.ops.rsqrt(column)[..., None, :]
        else:
            delta = gradient * keras.ops.rsqrt(_update_average(self.exp_avg_sq[index], square, decay))
        if self.scale_parameter:
            rate = rate * keras.ops.maximum(self.eps[1], _root_mean_square(weight))
        delta = delta / keras.ops.maximum(1.0, _root_mean_square(delta) / self.clip_threshold) * rate
        if self.beta1:
            delta = running_mean(self.exp_avg[index], delta, self.beta1)
        if self.exec_weight_decay:
            weight = weight - weight * self._unscaled_decay(index) * rate
        return weight - delta


def _update_average(slot: Parameter, value: Tensor, decay: Tensor) -> Tensor:
    """Set a slot to ``decay * slot + (1 - decay) * value``, and return the new value."""
    new = keras.ops.cast(slot.value, value.dtype) * decay + value * (1.0 - decay)
    slot.assign(keras.ops.cast(new, slot.dtype.name))
    return new


def _root_mean_square(value: Tensor) -> Tensor:
    return keras.ops.sqrt(keras.ops.mean(value * value))


def _check_rate(learning_rate: Any, relative_step: Any, warmup_init: Any) -> None:
    """Check that exactly one of `learning_rate` and `relative_step` defines the rate.

    Raises: ValueError: Both or neither do, or `warmup_init` is set without `relative_step`.
    """
    relative = checks.boolean("AdaFactor", "relative_step", relative_step)
    if relative is (learning_rate is not None):
        raise checks.fail_value(
            "AdaFactor", "exactly one of learning_rate and relative_step must be given", learning_rate,
            "relative_step=False with learning_rate, and learning_rate=None without",
        )
    if checks.boolean("AdaFactor", "warmup_init", warmup_init) and not relative:
        raise checks.fail_value("AdaFactor", "warmup_init must come with relative_step", True, "relative_step=True")
