"""Learning rates as cells of the step: the base that users subclass, and MindSpore's schedules."""

from __future__ import annotations

import math
from typing import Any

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.dtype import float32


class LearningRateSchedule(Cell):
    """The base of learning-rate schedules; a subclass computes the rate of a step in `construct`.

    Example:
        >>> import mixtrain.nn as nn, mixtrain
        >>> class Halving(LearningRateSchedule):
        ...     def construct(self, global_step):
        ...         return 0.1 * 0.5**global_step
        >>> float(Halving()(mixtrain.Tensor(2.0)))
        0.02500000037252903

    Source: MindSpore, `mindspore.nn.LearningRateSchedule`.
    """

    def construct(self, global_step: Any) -> Any:
        """Compute the learning rate of a step; a subclass defines it.

        Args:
            global_step: Number of the step, counted from 0; an int32 variable of shape (1,) when an optimizer asks.

        Returns:
            A float tensor of one element.

        Raises:
            NotImplementedError: The subclass does not define it.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: a LearningRateSchedule must compute its rate. "
            "Write def construct(self, global_step): ..."
        )


class _Decay(LearningRateSchedule):
    """What the schedules share that fall by a rate over a number of steps."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        where = type(self).__name__
        self.learning_rate = checks.number(where, "learning_rate", learning_rate, above=0.0, example=0.1)
        self.decay_rate = checks.number(where, "decay_rate", decay_rate, above=0.0, example=0.9)
        self.decay_steps = checks.integer(where, "decay_steps", decay_steps, at_least=1)
        self.is_stair = checks.boolean(where, "is_stair", is_stair)

    def _decays(self, global_step: Any) -> Any:
        """Return how many times `decay_steps` have passed, with `is_stair` rounded down."""
        share = keras.ops.cast(global_step, float32) / self.decay_steps
        return keras.ops.floor(share) if self.is_stair else share


class ExponentialDecayLR(_Decay):
    """The rate ``learning_rate * decay_rate ** (step / decay_steps)``.

    Args:
        learning_rate: The first rate, above 0.
        decay_rate: Factor of `decay_steps` steps, above 0.
        decay_steps: Steps of a decay.
        is_stair: Whether the exponent is rounded down.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> float(ExponentialDecayLR(0.5, 0.25, decay_steps=2)(1))
        0.25

    Source: MindSpore, `mindspore.nn.ExponentialDecayLR`.
    """

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__(learning_rate, decay_rate, decay_steps, is_stair)

    def construct(self, global_step: Any) -> Any:
        """Return the rate of the step."""
        return self.learning_rate * keras.ops.power(self.decay_rate, self._decays(global_step))


class NaturalExpDecayLR(_Decay):
    """The rate ``learning_rate * e ** (-decay_rate * step)``.

    Args:
        learning_rate: The first rate, above 0.
        decay_rate: Decay of a step, above 0. (MindSpore documents it as the decay of `decay_steps` steps; its code, and
            so this, takes it by the step.)
        decay_steps: Steps that share a rate with `is_stair`; otherwise without effect.
        is_stair: Whether the step is rounded down to a multiple of `decay_steps`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> round(float(NaturalExpDecayLR(0.5, 1.0, decay_steps=2)(1)), 4)
        0.1839

    Source: MindSpore, `mindspore.nn.NaturalExpDecayLR`.
    """

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__(learning_rate, decay_rate, decay_steps, is_stair)

    def construct(self, global_step: Any) -> Any:
        """Return the rate of the step."""
        step = self._decays(global_step) * self.decay_steps if self.is_stair else keras.ops.cast(global_step, float32)
        return self.learning_rate * keras.ops.exp(-self.decay_rate * step)


class InverseDecayLR(_Decay):
    """The rate ``learning_rate / (1 + decay_rate * step / decay_steps)``.

    Args:
        learning_rate: The first rate, above 0.
        decay_rate: What `decay_steps` steps add to the denominator, above 0.
        decay_steps: Steps of a decay.
        is_stair: Whether ``step / decay_steps`` is rounded down.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> float(InverseDecayLR(0.5, 1.0, decay_steps=2)(2))
        0.25

    Source: MindSpore, `mindspore.nn.InverseDecayLR`.
    """

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__(learning_rate, decay_rate, decay_steps, is_stair)

    def construct(self, global_step: Any) -> Any:
        """Return the rate of the step."""
        return self.learning_rate / (1.0 + self.decay_rate * self._decays(global_step))


class CosineDecayLR(LearningRateSchedule):
    """A rate that falls from `max_lr` to `min_lr` along half a cosine wave, and stays there.

    Args:
        min_lr: The last rate, at least 0.
        max_lr: The first rate, above `min_lr`.
        decay_steps: Steps until `min_lr` is reached.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> round(float(CosineDecayLR(0.0, 0.5, decay_steps=2)(1)), 4)
        0.25

    Source: MindSpore, `mindspore.nn.CosineDecayLR`.
    """

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        self.min_lr = checks.number("CosineDecayLR", "min_lr", min_lr, at_least=0.0)
        self.max_lr = checks.number("CosineDecayLR", "max_lr", max_lr, above=self.min_lr, example=0.1)
        self.decay_steps = checks.integer("CosineDecayLR", "decay_steps", decay_steps, at_least=1)

    def construct(self, global_step: Any) -> Any:
        """Return the rate of the step."""
        share = keras.ops.minimum(keras.ops.cast(global_step, float32), self.decay_steps) / self.decay_steps
        return self.min_lr + 0.5 * (self.max_lr - self.min_lr) * (1.0 + keras.ops.cos(math.pi * share))


class PolynomialDecayLR(LearningRateSchedule):
    """The rate ``(learning_rate - end_learning_rate) * (1 - step / decay_steps) ** power + end_learning_rate``.

    Args:
        learning_rate: The first rate, above 0.
        end_learning_rate: The last rate, at least 0.
        decay_steps: Steps until the last rate is reached; it stays from then on.
        power: Exponent, above 0.
        update_decay_steps: Whether, instead of staying, `decay_steps` becomes its next multiple, so that the rate
            rises again.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> float(PolynomialDecayLR(0.5, 0.25, decay_steps=2, power=1.0)(1))
        0.375

    Source: MindSpore, `mindspore.nn.PolynomialDecayLR`.
    """

    def __init__(
        self,
        learning_rate: float,
        end_learning_rate: float,
        decay_steps: int,
        power: float,
        update_decay_steps: bool = False,
    ) -> None:
        super().__init__()
        where = "PolynomialDecayLR"
        self.start_learning_rate = checks.number(where, "learning_rate", learning_rate, above=0.0, example=0.1)
        self.end_learning_rate = checks.number(where, "end_learning_rate", end_learning_rate, at_least=0.0)
        self.decay_steps = checks.integer(where, "decay_steps", decay_steps, at_least=1)
        self.power = checks.number(where, "power", power, above=0.0, example=1.0)
        self.update_decay_steps = checks.boolean(where, "update_decay_steps", update_decay_steps)

    def construct(self, global_step: Any) -> Any:
        """Return the rate of the step."""
        step = keras.ops.cast(global_step, float32)
        last: Any = self.decay_steps
        if self.update_decay_steps:
            last = last * keras.ops.maximum(keras.ops.ceil(step / last), 1.0)
        else:
            step = keras.ops.minimum(step, float(last))
        fall = self.start_learning_rate - self.end_learning_rate
        return fall * keras.ops.power(1.0 - step / last, self.power) + self.end_learning_rate


class WarmUpLR(LearningRateSchedule):
    """A rate that rises from 0 to `learning_rate` and stays there.

    Args:
        learning_rate: The last rate, at least 0.
        warmup_steps: Steps until `learning_rate` is reached.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> float(WarmUpLR(0.5, warmup_steps=2)(1))
        0.25

    Source: MindSpore, `mindspore.nn.WarmUpLR`.
    """

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        self.learning_rate = checks.number("WarmUpLR", "learning_rate", learning_rate, at_least=0.0, example=0.1)
        self.warmup_steps = checks.integer("WarmUpLR", "warmup_steps", warmup_steps, at_least=1)

    def construct(self, global_step: Any) -> Any:
        """Return the rate of the step."""
        step = keras.ops.minimum(keras.ops.cast(global_step, float32), float(self.warmup_steps))
        return self.learning_rate * (step / self.warmup_steps)
