"""The layers that a function or network refers to: children, attributes, closures, defaults, globals and modules."""

from __future__ import annotations

import functools
import types
from typing import Any

import keras
import pytest

import mixtrain
from mixtrain import nn
from mixtrain.network.referenced_layers import referenced_layers

L = keras.layers
NET = nn.Dense(2, 1)
MODULE = types.ModuleType("a_users_module")
MODULE.net = NET  # type: ignore[attr-defined]


class _Holder:
    def __init__(self) -> None:
        self.net = NET

    def run(self, x: Any) -> Any:
        return self.net(x)


class _WithPlainList(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "parts", [NET])


class _WithGlobal(nn.Cell):
    def construct(self, x: Any) -> Any:
        return NET(x)


def _by_default(x: Any, net: Any = NET) -> Any:
    return net(x)


def _by_closure() -> Any:
    net = NET
    return lambda x: net(x)


CASES = {
    "itself": NET, "closure": _by_closure(), "default": _by_default, "global": lambda x: NET(x),
    "module": lambda x: MODULE.net(x), "method": _Holder().run, "object": _Holder(), "partial": functools.partial(NET),
    "list": [[NET]], "dict": {"net": NET}, "child": nn.SequentialCell(NET), "plain list of a cell": _WithPlainList(),
    "global of a cell": _WithGlobal(), "jitted": mixtrain.jit(lambda x: NET(x)), "Model": mixtrain.Model(NET),
    "loss function": nn.WithLossCell(nn.Dense(2, 2), lambda outputs, label: NET(outputs)),
    "Keras Lambda": L.Lambda(lambda x: NET(x)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_cell_is_found_wherever_it_is_referred_to(case: str) -> None:
    assert any(layer is NET for layer in referenced_layers([CASES[case]]))


def test_keras_layers_are_found_with_those_inside_them_and_each_once() -> None:
    shared = L.Dense(2)
    network = keras.Sequential([keras.Input((3, 2)), shared, L.Bidirectional(L.LSTM(2), name="both")])
    layers = referenced_layers([lambda x: shared(network(x))])
    assert [layers.count(layer) for layer in (shared, network, network.get_layer("both").forward_layer.cell)] == [1] * 3


def test_a_network_that_shares_a_layer_is_not_found() -> None:
    shared = nn.Dense(2, 2)
    first, second = nn.SequentialCell(shared), nn.SequentialCell(shared, nn.Dense(2, 1))
    models = [mixtrain.Model(net, amp_level="O2", cast_model_type="bfloat16") for net in (first, second)]
    assert len(models) == 2 and referenced_layers([first]) == [first, shared]
    body = L.Dense(2)
    first, second = (keras.Sequential([keras.Input((2,)), body, L.Dense(n)]) for n in (1, 2))
    for network in (first, second):
        mixtrain.Model(network, amp_level="O2", cast_model_type="bfloat16").predict(keras.ops.ones((1, 2)))
    layers = referenced_layers([first])
    assert first in layers and body in layers and second not in layers


def test_layers_are_found_behind_any_number_of_other_objects() -> None:
    net = nn.SequentialCell(nn.Dense(2, 2), nn.Dense(2, 1))
    object.__setattr__(net[0], "rows", [[number] for number in range(5_000)])
    assert referenced_layers([net]) == [net, net[0], net[1]]
