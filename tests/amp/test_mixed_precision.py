"""Rewriting a network by level or by list: what computes in which dtype, and invalid rules."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import PrecisionRuleError, amp, nn
from tests.backends import quick_every

X = mixtrain.Tensor(np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32))


class Net(nn.Cell):
    """Two dense layers around a normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(4, 3)
        self.norm = nn.LayerNorm((3,))
        self.last = nn.Dense(3, 2)

    def construct(self, x: Any) -> Any:
        return self.last(self.norm(self.first(x)))


def _formats(network: nn.Cell) -> str:
    """Return a letter for what each layer computes in: f, h (float16) or b (bfloat16)."""
    letters = {"float32": "f", "float16": "h", "bfloat16": "b"}
    applied = amp.applied_plan(network)
    plan = amp.plan_precision(network, "O0") if applied is None else applied.plan
    return "".join(letters[row.compute_dtype] for row in plan.rows if row.path)


@quick_every(4)
@pytest.mark.parametrize(
    ("level", "options", "expected"),
    [
        ("O0", {}, "fff"), ("O1", {}, "hfh"), ("O2", {}, "hfh"), ("O2", {"dtype": "bfloat16"}, "bfb"),
        ("O1", {"cast_model_type": mixtrain.bfloat16}, "bfb"), ("O3", {"dtype": mixtrain.float16}, "hfh"),
    ],
)
def test_a_level_rewrites_the_network_in_place(level: Any, options: dict[str, Any], expected: str) -> None:
    net = Net()
    assert amp.auto_mixed_precision(net, level, **options) is net
    assert _formats(net) == expected
    assert net(X).dtype.name == "float32"
    assert {parameter.dtype for parameter in net.get_parameters()} == {mixtrain.float32}


def test_a_level_replaces_the_level_before_it() -> None:
    net = Net()
    exact = net(X)
    for level, expected in (("O3", "hfh"), ("O0", "fff")):
        amp.auto_mixed_precision(net, level)
        assert _formats(net) == expected
    np.testing.assert_array_equal(net(X), exact)


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_users_rule_beats_the_level_in_any_order(order: str) -> None:
    net = Net()
    if order == "before":
        net.first.to_float(mixtrain.float32)
    amp.auto_mixed_precision(net, "O3")
    if order == "after":
        net.first.to_float(mixtrain.float32)
        amp.auto_mixed_precision(net, "O3")
    assert _formats(net) == "ffh"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"white_list": [nn.Dense]}, "hfh"),
        ({"white_list": ["last"]}, "ffh"),
        ({"white_list": ["*st"], "dtype": mixtrain.bfloat16}, "bfb"),
        ({"black_list": [nn.LayerNorm]}, "hfh"),
        ({"black_list": [nn.Dense, "norm"]}, "fff"),
        ({"black_list": ["first"]}, "fhh"),
    ],
)
def test_a_list_rewrites_the_network_in_place(options: dict[str, Any], expected: str) -> None:
    net = Net()
    assert amp.custom_mixed_precision(net, **options) is net
    assert _formats(net) == expected
    assert net(X).dtype.name == "float32"


def test_a_layer_of_the_network_is_an_entry() -> None:
    net = Net()
    amp.custom_mixed_precision(net, white_list=[net.last])
    assert _formats(net) == "ffh"


def test_lists_work_on_keras_networks() -> None:
    layers = keras.layers
    net = keras.Sequential([keras.Input((4,)), layers.Dense(3, name="first"), layers.Dense(2, name="last")])
    amp.custom_mixed_precision(net, black_list=["first"])
    assert [layer.compute_dtype for layer in net.layers] == ["float32", "float16"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ValueError, "exactly one of white_list and black_list must be given"),
        ({"white_list": [nn.Dense], "black_list": [nn.Dense]}, ValueError, "exactly one of white_list and black_list"),
        ({"white_list": []}, TypeError, "white_list must be a list with entries"),
        ({"white_list": nn.Dense}, TypeError, "white_list must be a list with entries"),
        ({"white_list": [5]}, TypeError, "takes layer classes, layers or path patterns; got int 5"),
        ({"white_list": [nn.Conv2d]}, PrecisionRuleError, "Conv2d matches none of first, norm, last"),
        ({"black_list": ["conv*"]}, PrecisionRuleError, "'conv*' matches none of first, norm, last"),
        ({"white_list": [nn.Dense], "dtype": "float32"}, ValueError, "float16, bfloat16 or float8; got 'float32'"),
    ],
)
def test_a_list_that_cannot_be_is_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    net = Net()
    with pytest.raises(error) as caught:
        amp.custom_mixed_precision(net, **options)
    assert message in str(caught.value)
    assert _formats(net) == "fff"


def test_a_list_and_a_users_rule_that_contradict_are_both_named() -> None:
    net = Net()
    net.first.to_float(mixtrain.float32)
    with pytest.raises(PrecisionRuleError, match="contradict each other at first: white_list entry Dense means"):
        amp.custom_mixed_precision(net, white_list=[nn.Dense])


def test_two_names_of_the_half_format_must_agree() -> None:
    with pytest.raises(ValueError, match="dtype and cast_model_type must agree"):
        amp.auto_mixed_precision(Net(), "O2", mixtrain.float16, cast_model_type=mixtrain.bfloat16)
    assert _formats(amp.auto_mixed_precision(Net(), "O2", mixtrain.bfloat16, cast_model_type="bfloat16")) == "bfb"


def test_the_lists_are_copies() -> None:
    amp.get_white_list().clear()
    amp.get_black_list().clear()
    assert {nn.Dense, nn.Conv2d, keras.layers.Dense, keras.layers.LSTM} <= set(amp.get_white_list())
    assert {nn.BatchNorm2d, nn.LayerNorm, keras.layers.BatchNormalization} <= set(amp.get_black_list())
