"""Plans: users' rules beat levels, lists and options do what they say, nothing is touched until a plan is applied."""

from __future__ import annotations

import copy
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import amp, backend, nn
from mixtrain.backend import DeviceInfo
from mixtrain.precision import levels

L = keras.layers
F16, BF16, F32 = mixtrain.float16, mixtrain.bfloat16, mixtrain.float32


class Block(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.norm = nn.BatchNorm1d(4)

    def construct(self, x: Any) -> Any:
        return self.norm(self.fc(x))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = Block()
        self.second = Block()
        self.head = nn.Dense(4, 2)

    def construct(self, x: Any) -> Any:
        return self.head(self.second(self.first(x)))


def keras_net() -> keras.Model:
    return keras.Sequential([
        keras.Input((4,)), L.Dense(4, name="fc"), L.BatchNormalization(name="norm"), L.Dense(2, name="head"),
    ])


def formats(network: Any, level: str = "O2", **options: Any) -> dict[str, str]:
    return {row.path: row.compute_dtype.name for row in amp.plan_precision(network, level, **options).rows}


def test_planning_touches_nothing() -> None:
    net, model = Net(), keras_net()
    before = copy.copy(vars(net.head)), [layer.dtype_policy for layer in model.layers]
    for level in ("O0", "O1", "O2", "O3", "auto"):
        amp.plan_precision(net, level)
        amp.plan_precision(model, level)
    assert (vars(net.head), [layer.dtype_policy for layer in model.layers]) == before


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
def test_a_user_s_rule_beats_every_level_and_the_table_says_so(level: str) -> None:
    net = Net()
    net.first.to_float(F32)
    net.head.to_float(BF16)
    plan = amp.plan_precision(net, level)
    assert {plan.row(path).compute_dtype for path in ("first", "first.fc", "first.norm")} == {F32}
    assert plan.row("head").compute_dtype == BF16
    assert plan.row("head").rule == "to_float" and "bfloat16" in plan.row("head").why


@pytest.mark.parametrize("order", ["parent first", "child first"])
def test_a_rule_covers_what_is_below_and_the_later_of_two_wins(order: str) -> None:
    net = Net()
    calls = [lambda: net.first.to_float(F32), lambda: net.first.fc.to_float(F16)]
    for call in calls if order == "parent first" else reversed(calls):
        call()
    expected = "float16" if order == "parent first" else "float32"
    assert formats(net)["first.fc"] == expected
    assert formats(net)["first.norm"] == "float32"


def test_a_rule_given_after_the_plan_was_applied_counts_in_the_next_plan() -> None:
    net = Net()
    amp.auto_mixed_precision(net, "O2")
    net.head.to_float(F32)
    assert formats(net)["head"] == "float32"


def test_to_float_works_on_keras_layers_and_at_once_on_cells() -> None:
    model, cell = keras_net(), nn.Dense(4, 2).to_float(F16)
    mixtrain.to_float(model.get_layer("head"), F32)
    assert formats(model)["head"] == "float32" and formats(model)["fc"] == "float16"
    assert cell(np.ones((1, 4), np.float32)).dtype == F16


@pytest.mark.parametrize("bad", ["float64", np.int32, 16, "half"])
def test_to_float_refuses_other_formats(bad: Any) -> None:
    with pytest.raises(ValueError, match="to_float: dst_type must be float16, bfloat16, float32 or float8; got"):
        nn.Dense(2, 2).to_float(bad)


@pytest.mark.parametrize("make", [Net, keras_net])
def test_keep_batchnorm_fp32_concerns_normalization_alone_and_the_table_names_it(make: Any) -> None:
    for value in (True, False):
        plain, kept = amp.plan_precision(make(), "O2"), amp.plan_precision(make(), "O2", keep_batchnorm_fp32=value)
        for before, after in zip(plain.rows, kept.rows, strict=True):
            if "norm" in before.path:
                assert after.rule == f"keep_batchnorm_fp32={value}" and after.compute_dtype == F32
            else:
                assert (after.rule, after.compute_dtype) == (before.rule, before.compute_dtype)


@pytest.mark.parametrize("entries", [[nn.Dense], ["*fc", "head"]], ids=["class", "patterns"])
def test_a_white_list_computes_only_its_layers_in_half(entries: list[Any]) -> None:
    plan = amp.plan_precision(Net(), white_list=entries)
    half = {row.path for row in plan.rows if row.compute_dtype == F16}
    assert half == {"first.fc", "second.fc", "head"}
    assert all(row.output_dtype == F32 for row in plan.rows)


def test_a_black_list_computes_all_but_its_layers_in_half() -> None:
    net = Net()
    plan = amp.plan_precision(net, black_list=[net.first, nn.BatchNorm1d])
    kept = {row.path for row in plan.rows if row.compute_dtype == F32}
    assert kept == {"first", "first.fc", "first.norm", "second.norm"}


def test_custom_mixed_precision_applies_its_list_with_the_half_format_asked_for() -> None:
    net = amp.custom_mixed_precision(Net(), white_list=[*amp.get_white_list()], dtype=BF16)
    assert amp.applied_plan(net).plan.row("head").compute_dtype == BF16
    assert net(backend.to_tensor(np.ones((2, 4), np.float32))).dtype == F32


@pytest.mark.parametrize(
    ("lists", "error", "message"),
    [
        ({"white_list": ["nothing*"]}, mixtrain.PrecisionRuleError, r"'nothing\*' matches none of first"),
        ({"white_list": [nn.Conv2d]}, mixtrain.PrecisionRuleError, r"must match some layer; Conv2d matches none of"),
        ({"black_list": [nn.Dense(1, 1)]}, mixtrain.PrecisionRuleError, r"this Dense matches none of"),
        ({"white_list": [3]}, TypeError, r"takes layer classes, layers or path patterns; got int 3"),
        ({"white_list": []}, TypeError, r"white_list must be a list with entries"),
        ({"white_list": nn.Dense}, TypeError, r"white_list must be a list with entries"),
        ({}, ValueError, r"exactly one of white_list and black_list"),
        ({"white_list": [nn.Dense], "black_list": [nn.Dense]}, ValueError, r"exactly one of"),
    ],
)
def test_lists_that_match_nothing_or_are_none_are_errors(lists: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        amp.custom_mixed_precision(Net(), **lists)


def test_two_rules_that_contradict_are_an_error_naming_both() -> None:
    net = Net()
    net.head.to_float(F16)
    both = "black_list entry Dense means float32, to_float means float16"
    with pytest.raises(mixtrain.PrecisionRuleError, match=both):
        amp.custom_mixed_precision(net, black_list=[nn.Dense])
    amp.custom_mixed_precision(net, white_list=[nn.Dense])


def test_applying_a_second_plan_takes_the_first_one_back() -> None:
    model = keras_net()
    pristine = amp.plan_precision(model, "O0")
    amp.auto_mixed_precision(model, "O3")
    assert amp.plan_precision(model, "O0") == pristine
    amp.auto_mixed_precision(model, "O1")
    assert model.get_layer("norm").compute_dtype == "float32"
    amp.applied_plan(model).undo()
    assert [layer.compute_dtype for layer in model.layers] == ["float32"] * 3


def test_a_plan_of_another_network_is_refused() -> None:
    with pytest.raises(ValueError, match="the plan must be one of this network"):
        amp.apply_plan(keras_net(), amp.plan_precision(keras_net(), "O2"))


@pytest.mark.parametrize("dtype", ["bfloat16", pytest.param("float64", marks=pytest.mark.tensorflow)])
def test_layers_with_formats_of_their_own_are_left_alone(dtype: str) -> None:
    model = keras.Sequential([keras.Input((4,)), L.Dense(4, name="own", dtype=dtype), L.Dense(2, name="head")])
    plan = amp.plan_precision(model, "O2")
    assert plan.row("own").compute_dtype == dtype and plan.row("own").rule == "own dtype"
    amp.apply_plan(model, plan)
    assert model.get_layer("own").compute_dtype == dtype


@pytest.mark.parametrize(
    ("facts", "level", "half"),
    [
        (DeviceInfo("GPU", "GPU:0", True), "O2", F16),
        (DeviceInfo("TPU", "TPU:0", True), "O2", F16),
        (DeviceInfo("CPU", "CPU", True), "O2", BF16),
        (DeviceInfo("CPU", "CPU", False), "O0", F16),
    ],
)
def test_auto_picks_what_suits_the_device_and_says_why(
    facts: DeviceInfo, level: str, half: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels.backend, "describe_device", lambda: facts)
    plan = amp.plan_precision(nn.SequentialCell(nn.Dense(4, 2), nn.Dense(512, 256)), "auto")
    assert (plan.level, plan.half) == (level, half)
    assert plan.reason.startswith("auto: ") and plan.reason in str(plan)


@pytest.mark.parametrize(("width", "level"), [(64, "O0"), (512, "O2")])
@pytest.mark.parametrize("kind", ["cells", "keras"])
def test_auto_leaves_small_matrices_in_float32_on_a_cpu(
    width: int, level: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels.backend, "describe_device", lambda: DeviceInfo("CPU", "CPU", True))
    if kind == "cells":
        network: Any = nn.SequentialCell(nn.Dense(32, width), nn.ReLU(), nn.Dense(width, width))
    else:
        network = keras.Sequential([keras.Input((32,)), keras.layers.Dense(width), keras.layers.Dense(width)])
    plan = amp.plan_precision(network, "auto")
    assert (plan.level, plan.half) == (level, BF16)
    assert ("products as small" in plan.reason) == (level == "O0")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"amp_level": "o2"}, r'amp_level must be one of O0, O1, O2, O3, auto; got .o2.. Write amp_level="O2"'),
        ({"amp_level": "O4"}, r"amp_level must be one of"),
        ({"cast_model_type": "float32"}, r"cast_model_type must be float16, bfloat16 or float8; got .float32."),
    ],
)
def test_unknown_levels_and_formats_are_errors_that_say_what_to_write(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        amp.plan_precision(Net(), **options)


def test_the_table_shows_every_layer_with_its_rule() -> None:
    text = str(amp.plan_precision(Net(), "O2"))
    lines = text.splitlines()
    assert lines[0] == "precision plan: O2, half is float16 (as requested)"
    assert [line.split()[0] for line in lines[4:-2]] == [
        "(network)", "first", "first.fc", "first.norm", "second", "second.fc", "second.norm", "head",
    ]
    assert lines[-1] == "8 layers: 6 in float16, 2 in float32"


def test_a_matrix_product_of_a_functional_model_computes_in_half_at_o1() -> None:
    left, right = keras.Input((3, 4)), keras.Input((4, 5))
    model = keras.Model([left, right], keras.ops.matmul(left, right))
    plan = amp.plan_precision(model, "O1")
    assert [row.compute_dtype for row in plan.rows if row.layer == "Matmul"] == [F16]
    a, b = (np.random.default_rng(0).standard_normal(shape).astype("float32") for shape in [(1, 3, 4), (1, 4, 5)])
    exact = np.asarray(model([a, b]))
    applied = amp.apply_plan(model, plan)
    half = model([a, b])
    assert half.dtype == F32
    assert 0 < np.abs(np.asarray(half) - exact).max() < 1e-2
    applied.undo()
    np.testing.assert_array_equal(np.asarray(model([a, b])), exact)
