"""The loss-scaling rule and its state, on NumPy numbers, on tensors, and compiled."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend, data_backend
from mixtrain.compat.pytorch.changeable_scale import ChangeableScale
from mixtrain.loss_scale.rule import LARGEST_SCALE, LossScaleRule, LossScaleState, next_loss_scale
from tests.backends import quick_every
from tests.train.planted import GOLDEN


def _value(variable: Any) -> float:
    return float(backend.to_numpy(variable))


def _state(first: float, factor: float, window: int) -> LossScaleState:
    return LossScaleState(first, LossScaleRule(factor, window))


@pytest.mark.parametrize(("first", "factor", "window", "flags", "expected"), GOLDEN)
def test_the_rule_follows_every_golden_sequence_on_numpy_numbers(
    first: float, factor: float, window: int, flags: str, expected: list[float]
) -> None:
    scale, good = np.float32(first), np.int32(0)
    seen = []
    for flag in flags:
        scale, good = next_loss_scale(LossScaleRule(factor, window), scale, good, np.bool_(flag == "0"))
        seen.append(float(scale))
    assert seen == expected
    assert isinstance(scale, np.float32) and isinstance(good, np.int32)


@pytest.mark.parametrize(("first", "factor", "window", "flags", "expected"), GOLDEN)
def test_the_state_follows_every_golden_sequence(
    first: float, factor: float, window: int, flags: str, expected: list[float]
) -> None:
    state = _state(first, factor, window)
    seen = []
    for flag in flags:
        state.advance(flag == "0")
        seen.append(_value(state.loss_scale))
    assert seen == expected
    assert _value(state.skipped_steps) == flags.count("1")
    assert _value(state.applied_steps) == flags.count("0")


@pytest.mark.parametrize("jit", [False, True])
def test_a_compiled_state_follows_the_longest_golden_sequence(jit: bool) -> None:
    first, factor, window, flags, expected = GOLDEN[2]
    state = _state(first, factor, window)
    advance = backend.compile_function(state.advance, choice=backend.JitChoice(jit, "test"))
    seen = []
    for flag in flags:
        advance(backend.to_tensor(flag == "0"))
        seen.append(_value(state.loss_scale))
    assert seen == expected


def test_good_steps_beyond_the_window_still_grow_the_scale() -> None:
    scale, good = next_loss_scale(LossScaleRule(2.0, 3), np.float32(4), np.int32(7), np.bool_(True))
    assert (scale, good) == (8.0, 0)


@quick_every(3)
@pytest.mark.parametrize("finite", [True, False])
@pytest.mark.parametrize("factor", [2.0, 3.0, 1.5, 3000.0])
def test_the_scale_never_reaches_zero_infinity_or_nan_in_5000_steps(factor: float, finite: bool) -> None:
    scale, good = np.float32(2**24), np.int32(0)
    for _ in range(5000):
        scale, good = next_loss_scale(LossScaleRule(factor, 1), scale, good, np.bool_(finite))
        assert math.isfinite(scale) and scale >= 1
    assert scale == 1 if not finite else LARGEST_SCALE / factor < scale <= LARGEST_SCALE


@pytest.mark.slow
def test_5000_good_and_5000_bad_steps_in_a_compiled_loop_stay_finite() -> None:
    state = _state(2**24, 2.0, 1)

    def step(finite: Any) -> tuple[Any]:
        state.advance(finite)
        return (keras.ops.convert_to_tensor(state.loss_scale),)

    loop = backend.CompiledSteps(step, choice=backend.JitChoice(False, "test")).run_stream
    flags = data_backend.pipeline_from_arrays([np.repeat([True, False], 5000)])
    (scales,) = loop(flags.graph_iterator(), 10_000)
    scales = backend.to_numpy(scales)
    assert np.isfinite(scales).all() and scales.min() >= 1
    assert (scales[4999], scales[9999]) == (2.0**127, 1.0)


@pytest.mark.parametrize(
    ("scale", "factor", "expected"),
    [
        (2.0**126, 2.0, 2.0**127),
        (2.0**127, 2.0, 2.0**127),
        (LARGEST_SCALE, 2.0, LARGEST_SCALE),
        (2.0**127, 1.5, 2.0**127 * 1.5),
        (1.0, 1e39, 1.0),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_growth_is_left_out_where_it_is_not_finite_in_float32(scale: float, factor: float, expected: float) -> None:
    grown, good = next_loss_scale(LossScaleRule(factor, 1), np.float32(scale), np.int32(0), np.bool_(True))
    assert (float(grown), int(good)) == (expected, 0)


def test_the_scale_stops_at_one_even_where_a_division_would_pass_it() -> None:
    scale, _ = next_loss_scale(LossScaleRule(3.0, 2), np.float32(2), np.int32(1), np.bool_(False))
    assert scale == 1.0


def test_lowering_is_float32_division_by_the_factor() -> None:
    random = np.random.default_rng(0)
    for scale, factor in zip(random.uniform(2, 2e30, 500), random.uniform(1.01, 20, 500), strict=True):
        scale, factor = np.float32(scale), np.float32(factor)
        lowered, _ = next_loss_scale(LossScaleRule(float(factor), 1), scale, np.int32(0), np.bool_(False))
        assert lowered == max(scale / factor, np.float32(1))


@pytest.mark.parametrize("tensors", [False, True], ids=["numpy", "tensors"])
def test_a_rule_may_back_off_by_a_factor_of_its_own_down_to_a_floor_of_its_own(tensors: bool) -> None:
    rule = LossScaleRule(16.0, 1, backoff=0.3, minimum=0.25)
    scale: Any = np.float32(10)
    seen = []
    for finite in (False, False, False, False, False, True):
        given = (scale, np.int32(0), np.bool_(finite))
        scale, _ = next_loss_scale(rule, *(map(backend.to_tensor, given) if tensors else given))
        seen.append(float(scale))
    assert seen == [3.0, float(np.float32(0.9)), float(np.float32(float(np.float32(0.9)) * 0.3)), 0.25, 0.25, 4.0]


@pytest.mark.parametrize("tensors", [False, True], ids=["numpy", "tensors"])
def test_a_rule_may_end_at_a_maximum_of_its_own(tensors: bool) -> None:
    rule = LossScaleRule(4.0, 1, maximum=24.0)
    scale: Any = np.float32(2)
    seen = []
    for finite in (True, True, True, False, True):
        given = (scale, np.int32(0), np.bool_(finite))
        scale, _ = next_loss_scale(rule, *(map(backend.to_tensor, given) if tensors else given))
        seen.append(float(scale))
    assert seen == [8.0, 24.0, 24.0, 6.0, 24.0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_changeable_rule_holds_from_the_next_step_on_in_compiled_steps_too(compiled: bool) -> None:
    state = ChangeableScale(16, LossScaleRule(2.0, 1, backoff=0.5))
    function = backend.compile_function(state.advance, choice=backend.JitChoice(False, "test"))
    advance: Any = (lambda finite: function(backend.to_tensor(finite))) if compiled else state.advance
    advance(True)
    state.change_rule(LossScaleRule(3.0, 2, backoff=0.25))
    for finite in (True, True, False):
        advance(finite)
    assert _value(state.loss_scale) == 32 * 3 / 4


def test_a_window_that_no_counter_holds_never_fills() -> None:
    state = _state(16, 2.0, 10**10)
    state.advance(True)
    assert (_value(state.loss_scale), _value(state.good_steps)) == (16.0, 1)


def test_overflows_in_a_row_are_counted_and_a_good_step_ends_the_row() -> None:
    state = _state(16, 2.0, 3)
    for finite in (False, False, True, False):
        state.advance(finite)
    assert _value(state.overflows_in_a_row) == 1
    assert state.overflow_count() == 1


def test_overflows_at_the_smallest_scale_are_counted_over_good_steps_between_them() -> None:
    state = _state(2, 2.0, 3)
    for finite in (False, False, True, False, True, True, False):  # the first one is at scale 2
        state.advance(finite)
    assert _value(state.overflows_at_minimum) == 3
    assert state.overflow_count() == 3


def test_a_full_window_of_good_steps_forgives_the_overflows_at_the_smallest_scale() -> None:
    state = _state(1, 2.0, 2)
    for finite in (False, False, True, True):
        state.advance(finite)
    assert (_value(state.loss_scale), _value(state.overflows_at_minimum)) == (2.0, 0)


def test_a_scale_that_stays_at_one_is_forgiven_by_every_good_step() -> None:
    state = _state(1, 1.0, 1)
    for finite in (False, False, True, False):
        state.advance(finite)
    assert state.overflow_count() == 1


def test_forgetting_overflows_leaves_the_scale_and_the_totals() -> None:
    state = _state(4, 2.0, 2)
    for _ in range(5):
        state.advance(False)
    state.forget_overflows()
    assert state.overflow_count() == 0
    assert (_value(state.loss_scale), _value(state.skipped_steps)) == (1.0, 5)


def test_the_variables_are_everything_that_a_step_moves() -> None:
    state, other = _state(16, 2.0, 3), _state(1, 2.0, 3)
    for finite in (False, True, True, False, True):
        state.advance(finite)
    for mine, theirs in zip(other.variables(), state.variables(), strict=True):
        mine.assign(theirs)
    for finite in (True, True, False):
        state.advance(finite)
        other.advance(finite)
        for mine, theirs in zip(other.variables(), state.variables(), strict=True):
            np.testing.assert_array_equal(backend.to_numpy(mine), backend.to_numpy(theirs))
    assert [variable.dtype for variable in state.variables()] == ["float32", "int32"]
    assert not any(variable.trainable for variable in state.variables())
