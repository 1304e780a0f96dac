"""Conversion of any accepted learning rate into a Parameter or a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import is_any_tensor
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter
from mixtrain.optim.learning_rate_schedule import LearningRateSchedule
from mixtrain.typing import Tensor

# A number, one value per step, or a schedule.
LearningRateLike: TypeAlias = float | Sequence[float] | Tensor | Cell | keras.optimizers.schedules.LearningRateSchedule

_WRITE = "learning_rate=0.01, a list with one value a step, or a LearningRateSchedule"


class RatePerStep(LearningRateSchedule):
    """A list of learning rates, one per step, whose last value is used for all later steps.

    MindSpore raises an error after the last value. `rates` are float32 (n,), `name` is that of the parameter that
    stores them.

    Example:
        >>> import mixtrain
        >>> schedule = RatePerStep(np.array([0.5, 0.25], np.float32), "learning_rate")
        >>> [float(schedule(mixtrain.Tensor(step))) for step in (0, 1, 7)]
        [0.5, 0.25, 0.25]
    """

    def __init__(self, rates: np.ndarray, name: str) -> None:
        super().__init__(auto_prefix=False)
        self.learning_rate = Parameter(rates, name, requires_grad=False)

    def __len__(self) -> int:
        return int(self.learning_rate.shape[0])

    def construct(self, global_step: Tensor) -> Tensor:
        return keras.ops.take(self.learning_rate, keras.ops.minimum(global_step, len(self) - 1))


class KerasRate(LearningRateSchedule):
    """A `keras.optimizers.schedules.LearningRateSchedule` as a `LearningRateSchedule`. `schedule`: the Keras schedule.

    Example:
        >>> import keras, mixtrain
        >>> schedule = KerasRate(keras.optimizers.schedules.ExponentialDecay(0.5, decay_steps=1, decay_rate=0.5))
        >>> float(schedule(mixtrain.Tensor(1)))
        0.25
    """

    def __init__(self, schedule: keras.optimizers.schedules.LearningRateSchedule) -> None:
        super().__init__(auto_prefix=False)
        self.schedule = schedule

    def construct(self, global_step: Tensor) -> Tensor:
        return self.schedule(keras.ops.reshape(global_step, ()))


def as_learning_rate(where: str, value: LearningRateLike, name: str) -> Parameter | Cell:
    """Convert a learning rate to a scalar Parameter, or to the Cell that computes it from the step.

    `where`: Name of the caller, for error messages. `value`: A number, scalar tensor, list or 1-D array or tensor with
    one value per step, LearningRateSchedule, or `keras.optimizers.schedules.LearningRateSchedule`. `name`: Name of the
    parameter.

    Raises: ValueError: `value` is negative, not finite, empty, or has two or more axes.
    """
    if isinstance(value, Cell):
        return value
    if isinstance(value, keras.optimizers.schedules.LearningRateSchedule):
        return KerasRate(value)
    array = _as_array(where, value)
    if array.ndim > 1 or array.size == 0:
        raise checks.fail_value(
            where, "learning_rate must be a number or a list of numbers", f"shape {array.shape}", _WRITE
        )
    if not np.all(np.isfinite(array)):
        raise checks.fail_value(where, "learning_rate must be finite", value, "learning_rate=0.01")
    if array.ndim == 1:
        return RatePerStep(array.astype(np.float32), name)
    rate = checks.number(where, "learning_rate", float(array), at_least=0.0, example=0.01)
    return Parameter(np.asarray(rate, np.float32), name, requires_grad=False)


def _as_array(where: str, value: Any) -> np.ndarray:
    if is_any_tensor(value):
        return backend.to_numpy(value)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict, np.ndarray)):
        value = [backend.to_numpy(item) if is_any_tensor(item) else item for item in value]
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise checks.fail_value(where, "the learning rates must form one list", value, _WRITE) from error
    if array.dtype.kind not in "iuf":
        raise checks.fail_type(where, "learning_rate must be a number, list or schedule", value, _WRITE)
    return array
