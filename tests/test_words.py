"""The modules at the bottom layer: dtypes, argument checks, settings."""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import checks, execution
from mixtrain.dtype import as_dtype, is_float, is_half, wider
from tests.backends import held_as


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("float16", "float16"), (np.float32, "float32"), (np.dtype("int8"), "int8"), (float, "float32"), (int, "int64"),
        (bool, "bool"), (mixtrain.bfloat16, "bfloat16"),
    ],
)
def test_every_way_to_name_a_format_is_understood(value: Any, name: str) -> None:
    assert as_dtype(value) == name
    assert as_dtype(keras.ops.zeros((), held_as(name)).dtype) == held_as(name)


def test_what_names_no_format_is_an_error_with_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"one of bool, int8.*; got 'half'. Write, for example, mixtrain.float16"):
        as_dtype("half")


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        ("float16", "float32", "float32"), ("bfloat16", "float32", "float32"), ("float16", "bfloat16", "float32"),
        ("float64", "float16", "float64"), ("float16", "float16", "float16"),
    ],
)
def test_the_wider_of_two_formats(first: str, second: str, result: str) -> None:
    assert wider(first, second) == wider(second, first) == result


def test_half_and_float_formats_are_told_apart() -> None:
    assert [is_half(d) for d in ("float16", "bfloat16", "float32")] == [True, True, False]
    assert [is_float(d) for d in ("float16", "float64", "int32", "bool")] == [True, True, False, False]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: checks.integer("f", "n", 0, at_least=1), r"^f: n must be at least 1; got 0. Write n=1.$"),
        (lambda: checks.integer("f", "n", 1.0, at_least=1), r"^f: n must be an int; got float 1.0. Write n=1.$"),
        (lambda: checks.integer("f", "n", True, at_least=1), r"^f: n must be an int; got bool True. Write n=1.$"),
        (lambda: checks.number("f", "x", float("nan")), r"^f: x must be finite; got nan. Write x=1.0.$"),
        (lambda: checks.number("f", "x", 1, above=1, example=2), r"^f: x must be greater than 1; got 1. Write x=2.$"),
        (lambda: checks.number("f", "x", 3, at_most=2, example=2), r"^f: x must be at most 2; got 3. Write x=2.$"),
        (lambda: checks.number("f", "x", "1"), r"^f: x must be a number; got str '1'. Write x=1.0.$"),
        (lambda: checks.boolean("f", "b", 1), r"^f: b must be True or False; got int 1. Write b=True.$"),
        (lambda: checks.one_of("f", "m", "smae", ("same", "pad")), r'm must be one of same, pad; .*Write m="same".$'),
        (lambda: checks.instance("f", "c", 1, str, "c='a'"), r"^f: c must be a str; got int 1. Write c='a'.$"),
    ],
)
def test_checks_say_where_what_was_expected_what_came_and_what_to_write(check: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        check()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": 2}, r"mode must be GRAPH_MODE \(0\) or PYNATIVE_MODE \(1\); got 2"),
        ({"mode": True}, r"mode must be GRAPH_MODE"),
        ({"device_target": "cpu"}, r'must be one of CPU, GPU, Ascend; got .cpu.. Write device_target="CPU"'),
        ({"device_taget": "CPU"}, r'setting must be one of .*got .device_taget.. Write setting="device_target"'),
        ({"jit_level": "O3"}, r"jit_level must be one of auto, O0, O1, O2"),
    ],
)
def test_unknown_settings_and_values_are_errors(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mixtrain.set_context(**settings)


def test_settings_are_read_back_and_those_without_effect_are_kept() -> None:
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE, save_graphs=True, device_id=3)
    assert mixtrain.get_context("mode") == mixtrain.PYNATIVE_MODE and not execution.current.graph_mode
    assert (mixtrain.get_context("save_graphs"), mixtrain.get_context("device_id")) == (True, 3)
    with pytest.raises(ValueError, match="get_context: setting must be one of"):
        mixtrain.get_context("modes")


def test_a_device_that_is_not_here_is_warned_of_once_naming_the_one_in_use() -> None:
    mixtrain.set_context(device_target="Ascend")
    with pytest.warns(UserWarning, match='device_target="Ascend" is not on this machine; CPU is used instead'):
        execution.warn_missing_device("CPU")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        execution.warn_missing_device("CPU")


def test_a_cpu_that_keras_did_not_choose_is_warned_of_with_what_to_write() -> None:
    mixtrain.set_context(device_target="CPU")
    with pytest.warns(UserWarning, match='="CPU" is not what Keras chose; GPU is used. Hide .*CUDA_VISIBLE_DEVICES=""'):
        execution.warn_missing_device("GPU")


def test_the_seed_repeats_initial_values_and_numpy_s_draws() -> None:
    draws = []
    for _ in range(2):
        mixtrain.set_seed(5)
        draws.append((mixtrain.nn.Dense(3, 2).weight.asnumpy(), np.random.rand(3)))
    np.testing.assert_array_equal(draws[0][0], draws[1][0])
    np.testing.assert_array_equal(draws[0][1], draws[1][1])
    assert mixtrain.get_seed() == 5


def test_number_formats_turn_into_numpy_types_and_back() -> None:
    assert mixtrain.dtype.dtype_to_nptype(mixtrain.bfloat16) is np.float32
    assert mixtrain.dtype.pytype_to_dtype(mixtrain.dtype.dtype_to_nptype("int8")) == mixtrain.int8
    assert mixtrain.dtype.pytype_to_dtype(float) == mixtrain.float64
    with pytest.raises(TypeError, match="dtype: expected one of"):
        mixtrain.dtype.pytype_to_dtype(dict)
