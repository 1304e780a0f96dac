"""The managers: the rule on the host, bad arguments, and which of them a train step drives."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager, nn
from tests.train.planted import GOLDEN


@pytest.mark.parametrize(("first", "factor", "window", "flags", "expected"), GOLDEN)
def test_the_host_rule_follows_every_golden_sequence(
    first: float, factor: float, window: int, flags: str, expected: list[float]
) -> None:
    manager = DynamicLossScaleManager(first, factor, window)
    seen = []
    for flag in flags:
        manager.update_loss_scale(flag == "1")
        seen.append(manager.get_loss_scale())
    assert seen == expected


@pytest.mark.parametrize(("overflow", "expected"), [(True, 1.0), (False, 2.0**127)])
def test_bad_or_good_steps_without_end_stay_finite_on_the_host(overflow: bool, expected: float) -> None:
    manager = DynamicLossScaleManager(2**24, 2, 1)
    seen = []
    for _ in range(150):
        manager.update_loss_scale(overflow)
        seen.append(manager.get_loss_scale())
    assert all(1 <= scale < math.inf for scale in seen)
    # Where it has arrived it stays: a step depends on the scale and the good steps alone, and a window of 1 keeps none.
    assert seen[-40:] == [expected] * 40


def test_the_defaults_are_mindspores() -> None:
    dynamic, fixed = DynamicLossScaleManager(), FixedLossScaleManager()
    assert (dynamic.get_loss_scale(), dynamic.scale_factor, dynamic.scale_window) == (2.0**24, 2, 2000)
    assert (fixed.get_loss_scale(), fixed.get_drop_overflow_update()) == (128.0, True)
    assert dynamic.get_drop_overflow_update() is True


def test_growth_on_the_host_stops_before_infinity() -> None:
    manager = DynamicLossScaleManager(2.0**127, 2, 1)
    manager.update_loss_scale(False)
    assert manager.get_loss_scale() == 2.0**127


@pytest.mark.parametrize(
    ("arguments", "error", "name", "write"),
    [
        ({"init_loss_scale": 0.5}, ValueError, "at least 1; got 0.5", "init_loss_scale="),
        ({"init_loss_scale": 0}, ValueError, "at least 1; got 0", "init_loss_scale="),
        ({"init_loss_scale": -8}, ValueError, "at least 1; got -8", "init_loss_scale="),
        ({"init_loss_scale": math.nan}, ValueError, "finite; got nan", "init_loss_scale="),
        ({"init_loss_scale": math.inf}, ValueError, "finite; got inf", "init_loss_scale="),
        ({"init_loss_scale": 1e39}, ValueError, "at most 3.40282e+38; got 1e+39", "init_loss_scale="),
        ({"init_loss_scale": "8"}, TypeError, "a number; got str '8'", "init_loss_scale="),
        ({"init_loss_scale": True}, TypeError, "a number; got bool True", "init_loss_scale="),
        ({"init_loss_scale": None}, TypeError, "a number; got NoneType None", "init_loss_scale="),
        ({"scale_factor": 1}, ValueError, "greater than 1; got 1", "scale_factor=2"),
        ({"scale_factor": 0.5}, ValueError, "greater than 1; got 0.5", "scale_factor=2"),
        ({"scale_factor": -2}, ValueError, "greater than 1; got -2", "scale_factor=2"),
        ({"scale_factor": "2"}, TypeError, "a number; got str '2'", "scale_factor=2"),
        ({"scale_factor": 1e39}, ValueError, "at most", "scale_factor=2"),
        ({"scale_window": 0}, ValueError, "at least 1; got 0", "scale_window=2000"),
        ({"scale_window": -1}, ValueError, "at least 1; got -1", "scale_window=2000"),
        ({"scale_window": 2.0}, TypeError, "an int; got float 2.0", "scale_window=2"),
        ({"scale_window": True}, TypeError, "an int; got bool True", "scale_window=2000"),
        ({"scale_window": "3"}, TypeError, "an int; got str '3'", "scale_window=3"),
    ],
)
def test_a_bad_argument_of_the_dynamic_manager_is_refused_with_what_to_write(
    arguments: dict[str, Any], error: type[Exception], name: str, write: str
) -> None:
    with pytest.raises(error) as caught:
        DynamicLossScaleManager(**arguments)
    message = str(caught.value)
    assert message.startswith(f"DynamicLossScaleManager: {next(iter(arguments))} must be ")
    assert name in message and "Write " + write in message


@pytest.mark.parametrize(
    ("arguments", "error", "expected", "write"),
    [
        ((0,), ValueError, "loss_scale must be at least 1; got 0", "loss_scale="),
        ((0.99,), ValueError, "loss_scale must be at least 1; got 0.99", "loss_scale="),
        ((math.inf,), ValueError, "loss_scale must be finite; got inf", "loss_scale="),
        ((1e39,), ValueError, "loss_scale must be at most", "loss_scale="),
        (("a",), TypeError, "loss_scale must be a number; got str 'a'", "loss_scale="),
        ((8, 1), TypeError, "drop_overflow_update must be True or False; got int 1", "drop_overflow_update=True"),
        ((8, None), TypeError, "drop_overflow_update must be True or False", "drop_overflow_update=True"),
    ],
)
def test_a_bad_argument_of_the_fixed_manager_is_refused_with_what_to_write(
    arguments: tuple[Any, ...], error: type[Exception], expected: str, write: str
) -> None:
    with pytest.raises(error) as caught:
        FixedLossScaleManager(*arguments)
    assert str(caught.value).startswith(f"FixedLossScaleManager: {expected}")
    assert f"Write {write}" in str(caught.value)


def test_the_error_names_the_subclass_that_was_asked() -> None:
    class Mine(DynamicLossScaleManager):
        pass

    with pytest.raises(ValueError, match="^Mine: init_loss_scale"):
        Mine(0)


def test_a_window_in_the_place_of_the_factor_is_accepted_and_pointed_out() -> None:
    with pytest.warns(UserWarning, match=r"scale_factor=3000 looks like a window.*scale_window=3000\)"):
        manager = DynamicLossScaleManager(4, 3000)
    assert (manager.get_loss_scale(), manager.scale_factor, manager.scale_window) == (4, 3000, 2000)
    manager.update_loss_scale(True)
    assert manager.get_loss_scale() == 1


@pytest.mark.parametrize("overflow", [True, 1, np.bool_(True), np.array([True])])
def test_any_truth_value_tells_of_an_overflow(overflow: Any) -> None:
    manager = DynamicLossScaleManager(16, 2, 3)
    manager.update_loss_scale(overflow)
    assert manager.get_loss_scale() == 8


def test_tensors_tell_of_overflows_too() -> None:
    manager = DynamicLossScaleManager(16, 2, 1)
    manager.update_loss_scale(mixtrain.Tensor(True))
    assert manager.get_loss_scale() == 8
    manager.update_loss_scale(mixtrain.Tensor([False]))
    assert manager.get_loss_scale() == 16


@pytest.mark.parametrize("overflow", [None, "yes", [True]])
def test_what_is_no_truth_value_is_refused(overflow: Any) -> None:
    with pytest.raises(TypeError, match="update_loss_scale: overflow must be True or False; got"):
        DynamicLossScaleManager().update_loss_scale(overflow)


def test_a_fixed_manager_stays_and_offers_a_cell_only_where_it_drops() -> None:
    manager = FixedLossScaleManager(8)
    manager.update_loss_scale(True)
    assert manager.get_loss_scale() == 8
    assert isinstance(manager.get_update_cell(), nn.FixedLossScaleUpdateCell)
    assert FixedLossScaleManager(8, False).get_update_cell() is None


def test_the_update_cell_and_the_manager_share_one_scale() -> None:
    manager = DynamicLossScaleManager(16, 2, 3)
    cell = manager.get_update_cell()
    assert isinstance(cell, nn.DynamicLossScaleUpdateCell) and cell.get_loss_scale() == 16
    cell(cell.state.loss_scale, mixtrain.Tensor(True))
    assert manager.get_loss_scale() == 8
    manager.update_loss_scale(True)
    assert float(cell.state.loss_scale) == 4


def test_a_second_update_cell_has_a_state_of_its_own_from_the_first_scale() -> None:
    manager = DynamicLossScaleManager(16, 2, 3)
    first = manager.get_update_cell()
    first(first.state.loss_scale, mixtrain.Tensor(True))
    with pytest.warns(UserWarning, match="already drives a Model.*Write a new DynamicLossScaleManager"):
        second = manager.get_update_cell()
    assert (float(first.state.loss_scale), float(second.state.loss_scale)) == (8, 16)
    second(second.state.loss_scale, mixtrain.Tensor(True))
    second(second.state.loss_scale, mixtrain.Tensor(True))
    assert (float(first.state.loss_scale), manager.get_loss_scale()) == (8, 4)


def test_two_managers_never_share_a_scale() -> None:
    one, other = DynamicLossScaleManager(), DynamicLossScaleManager()
    one.update_loss_scale(True)
    assert (one.get_loss_scale(), other.get_loss_scale()) == (2.0**23, 2.0**24)


@pytest.mark.parametrize("missing", ["get_loss_scale", "update_loss_scale"])
def test_a_subclass_that_forgot_a_method_cannot_be_made(missing: str) -> None:
    methods = {"get_loss_scale": lambda self: 8.0, "update_loss_scale": lambda self, overflow: None}
    del methods[missing]
    with pytest.raises(TypeError, match=f"Forgetful.*{missing}"):
        type("Forgetful", (LossScaleManager,), methods)()


def test_a_manager_of_ones_own_drops_overflows_and_is_driven_from_python_unless_it_says_otherwise() -> None:
    methods = {"get_loss_scale": lambda self: 8.0, "update_loss_scale": lambda self, overflow: None}
    manager = type("Mine", (LossScaleManager,), methods)()
    assert manager.get_update_cell() is None
    assert manager.get_drop_overflow_update() is True


def test_making_a_manager_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DynamicLossScaleManager(2**16, 2, 1000)
        DynamicLossScaleManager(init_loss_scale=1, scale_factor=1.0001, scale_window=1)
