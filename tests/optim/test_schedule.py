"""Learning rates: numbers, lists, schedules of both kinds, and how they are changed and read."""

from __future__ import annotations

import re
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from mixtrain.optim import SGD, LearningRateSchedule
from tests.backends import quick_every
from tests.optim.setting import parameter, tensors, values

PLAIN = backend.JitChoice(False, "test")


def moved(learning_rate: Any, steps: int, *, compiled: bool = False) -> list[float]:
    """Return how far each step went."""
    w = parameter("w", 0.0)
    optimizer: Any = SGD([w], learning_rate)
    if compiled:
        optimizer = backend.compile_function(optimizer, choice=PLAIN)
    weights = [0.0]
    for _ in range(steps):
        optimizer(tensors([1.0]))
        weights += values(w)
    return [before - after for before, after in zip(weights, weights[1:], strict=False)]


class Halving(LearningRateSchedule):
    def construct(self, global_step: Any) -> Any:
        return 0.5 * 0.5 ** keras.ops.cast(global_step, "float32")


@pytest.mark.parametrize("rate", [0.25, np.float64(0.25), Tensor(0.25), np.array(0.25), Parameter(0.25)])
def test_numbers_and_scalars_stay(rate: Any) -> None:
    assert moved(rate, 2) == [0.25, 0.25]


@quick_every(3)
@pytest.mark.parametrize("rates", [[0.5, 0.25], (0.5, 0.25), np.array([0.5, 0.25]), Tensor([0.5, 0.25])])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_list_gives_one_rate_a_step_and_its_last_from_then_on(rates: Any, compiled: bool) -> None:
    assert moved(rates, 4, compiled=compiled) == [0.5, 0.25, 0.25, 0.25]


def test_a_generator_of_rates_is_read() -> None:
    assert moved((0.5**k for k in range(1, 3)), 2) == [0.5, 0.25]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_schedule_is_asked_with_the_step_from_zero(compiled: bool) -> None:
    assert moved(Halving(), 3, compiled=compiled) == [0.5, 0.25, 0.125]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_keras_schedule_is_taken(compiled: bool) -> None:
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([0, 1], [0.5, 0.25, 0.125])
    assert moved(schedule, 3, compiled=compiled) == [0.5, 0.25, 0.125]


def test_plain_arithmetic_with_the_step_works_in_schedules() -> None:
    class Warm(LearningRateSchedule):
        def construct(self, global_step: Any) -> Any:
            return 0.125 * global_step + 0.125

    assert moved(Warm(), 3) == [0.125, 0.25, 0.375]


def test_the_rate_can_be_changed_between_compiled_steps() -> None:
    w = parameter("w", 0.0)
    optimizer = SGD([w], 0.5)
    step = backend.compile_function(optimizer, choice=PLAIN)
    step(tensors([1.0]))
    optimizer.learning_rate.set_data(Tensor(0.25))
    step(tensors([1.0]))
    optimizer.learning_rate = 0.125
    step(tensors([1.0]))
    assert values(w) == [-0.875]
    assert backend.trace_count(step) == 1


def test_the_coming_rate_can_be_read() -> None:
    optimizer = SGD([parameter("w", 0.0)], [0.5, 0.25])
    assert float(optimizer.get_lr()) == 0.5
    optimizer(tensors([1.0]))
    assert float(optimizer.get_lr()) == 0.25
    assert tuple(optimizer.get_lr().shape) == ()
    assert values(optimizer.learning_rate.learning_rate) == [0.5, 0.25]


@pytest.mark.parametrize(
    ("rate", "error", "message"),
    [
        (-0.1, ValueError, "SGD: learning_rate must be at least 0; got -0.1. Write learning_rate=0.01."),
        (float("nan"), ValueError, "learning_rate must be finite"),
        ([], ValueError, "learning_rate must be a number or a list of numbers; got 'shape (0,)'"),
        ([[0.1]], ValueError, "got 'shape (1, 1)'"),
        ([0.1, float("inf")], ValueError, "learning_rate must be finite"),
        ([0.1, [0.2]], ValueError, "the learning rates must form one list"),
        ("0.1", TypeError, "learning_rate must be a number, list or schedule; got str '0.1'"),
        (None, TypeError, "learning_rate must be a number, list or schedule"),
        (True, TypeError, "learning_rate must be a number, list or schedule"),
    ],
)
def test_other_rates_are_refused(rate: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        SGD([parameter("w", 0.0)], rate)


def test_a_schedule_without_construct_says_what_to_write() -> None:
    class Empty(LearningRateSchedule):
        pass

    with pytest.raises(NotImplementedError, match="Empty: a LearningRateSchedule must compute its rate"):
        SGD([parameter("w", 0.0)], Empty())(tensors([1.0]))
