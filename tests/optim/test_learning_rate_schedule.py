"""Learning rates as cells of the step: the reference's numbers, eagerly, compiled and inside an optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
import mixtrain.ops as ops
from mixtrain import backend
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from tests.backends import quick_every
from tests.nn.reference import case
from tests.optim.setting import parameter, tensors, values

# To call with what the types forbid.
loose: Any = nn

PLAIN = backend.JitChoice(False, "test")
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "ExponentialDecayLR_plain": (0.1, 0.9, 4),
    "ExponentialDecayLR_stair": (0.1, 0.9, 4, True),
    "NaturalExpDecayLR_plain": (0.1, 0.9, 4),
    "NaturalExpDecayLR_stair": (0.1, 0.9, 4, True),
    "InverseDecayLR_plain": (0.1, 0.9, 4),
    "InverseDecayLR_stair": (0.1, 0.9, 4, True),
    "CosineDecayLR_plain": (0.01, 0.1, 8),
    "PolynomialDecayLR_plain": (0.1, 0.01, 8, 0.5),
    "PolynomialDecayLR_square": (0.1, 0.01, 8, 2.0),
    "PolynomialDecayLR_again": (0.1, 0.01, 4, 0.5, True),
    "WarmUpLR_plain": (0.2, 5),
}


def make(name: str) -> Any:
    return getattr(nn, name.partition("_")[0])(*ARGUMENTS[name])


@quick_every(2)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_schedules_give_the_reference_numbers(name: str) -> None:
    schedule = make(name)
    rates = [float(schedule(Tensor(step, "int32"))) for step in range(12)]
    np.testing.assert_allclose(rates, case(f"schedule_{name}", "optim_reference")["y"], rtol=1e-5, atol=1e-8)


def test_schedules_take_the_variable_of_an_optimizer_and_keep_its_shape() -> None:
    step = Parameter(np.array([3], np.int32), "global_step", requires_grad=False)
    for name in ARGUMENTS:
        rate = make(name)(step)
        assert (tuple(rate.shape), rate.dtype) == ((1,), "float32"), name


def test_a_compiled_optimizer_follows_a_schedule() -> None:
    w = parameter("w", 0.0)
    step = backend.compile_function(nn.SGD([w], nn.WarmUpLR(0.5, 2)), choice=PLAIN)
    weights = []
    for _ in range(4):
        step(tensors([1.0]))
        weights += values(w)
    assert weights == [0.0, -0.25, -0.75, -1.25]


class WarmCosine(nn.LearningRateSchedule):
    """Warm-up, then half a cosine wave, as scripts write it: the step is an int, and meets floats."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.warmup_steps = steps
        self.warm = nn.WarmUpLR(0.5, steps)
        self.cosine = nn.CosineDecayLR(0.0, 0.5, 2)

    def construct(self, global_step: Any) -> Any:
        later = self.cosine(global_step - self.warmup_steps)
        return ops.select(global_step < self.warmup_steps, self.warm(global_step), later)


class WarmPolynomial(nn.LearningRateSchedule):
    """Warm-up, then a polynomial, as the model zoo weighs the two with primitives."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.warm = nn.WarmUpLR(0.5, steps)
        self.decay = nn.PolynomialDecayLR(0.5, 0.1, 4, 1.0)
        self.warmup_steps = Tensor(np.array([steps]).astype(np.float32))
        self.greater, self.cast = ops.Greater(), ops.Cast()
        self.one = Tensor(np.array([1.0]).astype(np.float32))

    def construct(self, global_step: Any) -> Any:
        is_warmup = self.cast(self.greater(self.warmup_steps, global_step), mixtrain.float32)
        return (self.one - is_warmup) * self.decay(global_step) + is_warmup * self.warm(global_step)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [(WarmCosine, [0.0, 0.25, 0.5, 0.25, 0.0]), (WarmPolynomial, [0.0, 0.25, 0.3, 0.2, 0.1])],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_schedules_combine_in_one_of_the_users_own(schedule: Any, rates: list[float], compiled: bool) -> None:
    w = parameter("w", 0.0)
    step: Any = nn.SGD([w], schedule(2))
    if compiled:
        step = backend.compile_function(step, choice=PLAIN)
    weights = [0.0]
    for _ in range(5):
        step(tensors([1.0]))
        weights += values(w)
    assert np.subtract(weights[:-1], weights[1:]) == pytest.approx(rates, abs=1e-6)


def test_arithmetic_between_the_step_and_floats_promotes() -> None:
    class Plain(nn.LearningRateSchedule):
        def construct(self, global_step: Any) -> Any:
            passed = global_step - 1
            return 0.5 / (passed + 2.0) + 0.25 * (global_step > 0) * 0.0

    schedule = Plain()
    rate = schedule(Parameter(np.array([1], np.int32), "global_step", requires_grad=False))
    assert backend.to_numpy(rate).tolist() == [0.25]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: loose.CosineDecayLR(0.1, 0.1, 4), ValueError,
            "CosineDecayLR: max_lr must be greater than 0.1; got 0.1",
        ),
        (lambda: loose.WarmUpLR(0.1, 0), ValueError, "WarmUpLR: warmup_steps must be at least 1; got 0"),
        (
            lambda: loose.ExponentialDecayLR(0.0, 0.9, 4), ValueError,
            "ExponentialDecayLR: learning_rate must be greater",
        ),
        (lambda: loose.InverseDecayLR(0.1, 0.9, 4, 1), TypeError, "InverseDecayLR: is_stair must be True or False"),
        (lambda: loose.PolynomialDecayLR(0.1, 0.0, 4.0, 1.0), TypeError, "decay_steps must be an int; got float 4.0"),
        (lambda: loose.PolynomialDecayLR("a", 0.0, 4, 1.0), TypeError, "learning_rate must be a number"),
    ],
)
def test_bad_arguments_are_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
