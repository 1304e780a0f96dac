"""`LearningRateSchedule`, the base class of learning-rate schedules, and MindSpore's built-in schedules."""

from __future__ import annotations

import math

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.dtype import float32
from mixtrain.typing import Tensor


class LearningRateSchedule(Cell):
    """Base class of learning-rate schedules; a subclass computes the rate of a step in `construct`.

    Example:
        >>> import mixtrain.nn as nn, mixtrain
        >>> class Halving(LearningRateSchedule):
        ...     def construct(self, global_step):
        ...         return 0.1 * 0.5**global_step
        >>> float(Halving()(mixtrain.Tensor(2.0)))
        0.02500000037252903
    """

    def construct(self, global_step: Tensor) -> Tensor:
        """Compute the learning rate of a step; a subclass defines it.

        Args: global_step: Index of the step, from 0; an optimizer passes an int32 variable of shape (1,).
        Returns: A float tensor of one element.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: a LearningRateSchedule must compute its rate. "
            "Write def construct(self, global_step): ..."
        )


class _Decay(LearningRateSchedule):
    """Base class of the schedules with a decay rate per number of steps."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        where = type(self).__name__
        self.learning_rate = checks.number(where, "learning_rate", learning_rate, above=0.0, example=0.1)
        self.decay_rate = checks.number(where, "decay_rate", decay_rate, above=0.0, example=0.9)
        self.decay_steps = checks.integer(where, "decay_steps", decay_steps, at_least=1)
        self.is_stair = checks.boolean(where, "is_stair", is_stair)

    def _decay_periods(self, global_step: Tensor) -> Tensor:
        """Return ``global_step / decay_steps``, rounded down with `is_stair`."""
        periods = keras.ops.cast(global_step, float32) / self.decay_steps
        return keras.ops.floor(periods) if self.is_stair else periods


class ExponentialDecayLR(_Decay):
    """The rate ``learning_rate * decay_rate ** (step / decay_steps)``.

    Args:
        learning_rate: Initial rate, above 0.
        decay_rate: Factor that `decay_steps` steps multiply the rate by, above 0.
        decay_steps: Number of steps per factor of `decay_rate`.
        is_stair: Whether the exponent is rounded down.

    Example:
        >>> float(ExponentialDecayLR(0.5, 0.25, decay_steps=2)(1))
        0.25
    """

    def construct(self, global_step: Tensor) -> Tensor:
        return self.learning_rate * keras.ops.power(self.decay_rate, self._decay_periods(global_step))


class NaturalExpDecayLR(_Decay):
    """The rate ``learning_rate * e ** (-decay_rate * step)``.

    Args:
        learning_rate: Initial rate, above 0.
        decay_rate: Decay per step, above 0. (MindSpore documents it as the decay per `decay_steps` steps, but its code,
            like this one, applies it per step.)
        decay_steps: With `is_stair`, the number of steps with the same rate; otherwise it has no effect.
        is_stair: Whether the step is rounded down to a multiple of `decay_steps`.

    Example:
        >>> round(float(NaturalExpDecayLR(0.5, 1.0, decay_steps=2)(1)), 4)
        0.1839
    """

    def construct(self, global_step: Tensor) -> Tensor:
        if self.is_stair:
            step = self._decay_periods(global_step) * self.decay_steps
        else:
            step = keras.ops.cast(global_step, float32)
        return self.learning_rate * keras.ops.exp(-self.decay_rate * step)


class InverseDecayLR(_Decay):
    """The rate ``learning_rate / (1 + decay_rate * step / decay_steps)``.

    Args:
        learning_rate: Initial rate, above 0.
        decay_rate: Amount that `decay_steps` steps add to the denominator, above 0.
        decay_steps: Number of steps per `decay_rate`.
        is_stair: Whether ``step / decay_steps`` is rounded down.

    Example:
        >>> float(InverseDecayLR(0.5, 1.0, decay_steps=2)(2))
        0.25
    """

    def construct(self, global_step: Tensor) -> Tensor:
        return self.learning_rate / (1.0 + self.decay_rate * self._decay_periods(global_step))


class CosineDecayLR(LearningRateSchedule):
    """A rate that decays from `max_lr` to `min_lr` along half a cosine wave, then stays constant.

    Args:
        min_lr, max_lr: Final rate, at least 0, and initial rate, above it.
        decay_steps: Number of steps until `min_lr` is reached.

    Example:
        >>> round(float(CosineDecayLR(0.0, 0.5, decay_steps=2)(1)), 4)
        0.25
    """

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        self.min_lr = checks.number("CosineDecayLR", "min_lr", min_lr, at_least=0.0)
        self.max_lr = checks.number("CosineDecayLR", "max_lr", max_lr, above=self.min_lr, example=0.1)
        self.decay_steps = checks.integer("CosineDecayLR", "decay_steps", decay_steps, at_least=1)

    def construct(self, global_step: Tensor) -> Tensor:
        progress = keras.ops.minimum(keras.ops.cast(global_step, float32), self.decay_steps) / self.decay_steps
        return self.min_lr + 0.5 * (self.max_lr - self.min_lr) * (1.0 + keras.ops.cos(math.pi * progress))


class PolynomialDecayLR(LearningRateSchedule):
    """The rate ``(learning_rate - end_learning_rate) * (1 - step / decay_steps) ** power + end_learning_rate``.

    Args:
        learning_rate: Initial rate, above 0.
        end_learning_rate: Final rate, at least 0.
        decay_steps: Number of steps until the final rate is reached, which then stays constant.
        power: Exponent, above 0.
        update_decay_steps: Whether `decay_steps` is extended to its next multiple when it is reached, so that the rate
            rises again.

    Example:
        >>> float(PolynomialDecayLR(0.5, 0.25, decay_steps=2, power=1.0)(1))
        0.375
    """

    def __init__(
        self, learning_rate: float, end_learning_rate: float, decay_steps: int, power: float,
        update_decay_steps: bool = False,
    ) -> None:
        super().__init__()
        where = "PolynomialDecayLR"
        self.start_learning_rate = checks.number(where, "learning_rate", learning_rate, above=0.0, example=0.1)
        self.end_learning_rate = checks.number(where, "end_learning_rate", end_learning_rate, at_least=0.0)
        self.decay_steps = checks.integer(where, "decay_steps", decay_steps, at_least=1)
        self.power = checks.number(where, "power", power, above=0.0, example=1.0)
        self.update_decay_steps = checks.boolean(where, "update_decay_steps", update_decay_steps)

    def construct(self, global_step: Tensor) -> Tensor:
        step = keras.ops.cast(global_step, float32)
        decay_steps: Tensor | float = self.decay_steps
        if self.update_decay_steps:
            decay_steps = decay_steps * keras.ops.maximum(keras.ops.ceil(step / decay_steps), 1.0)
        else:
            step = keras.ops.minimum(step, float(decay_steps))
        difference = self.start_learning_rate - self.end_learning_rate
        return difference * keras.ops.power(1.0 - step / decay_steps, self.power) + self.end_learning_rate


class WarmUpLR(LearningRateSchedule):
    """A rate that rises linearly from 0 to `learning_rate`, at least 0, in `warmup_steps` steps, then stays constant.

    Example:
        >>> float(WarmUpLR(0.5, warmup_steps=2)(1))
        0.25
    """

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        self.learning_rate = checks.number("WarmUpLR", "learning_rate", learning_rate, at_least=0.0, example=0.1)
        self.warmup_steps = checks.integer("WarmUpLR", "warmup_steps", warmup_steps, at_least=1)

    def construct(self, global_step: Tensor) -> Tensor:
        step = keras.ops.minimum(keras.ops.cast(global_step, float32), float(self.warmup_steps))
        return self.learning_rate * (step / self.warmup_steps)
