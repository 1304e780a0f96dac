"""The layers of outputs are found in graphs, by the order of layers, and in the source of methods."""

from __future__ import annotations

from typing import Any

import keras
import pytest

from mixtrain import nn
from mixtrain.network.output_calls import CallSite, output_calls

L = keras.layers


def names(calls: Any) -> list[str]:
    return [getattr(call.layer, "name", type(call.layer).__name__) for call in calls]


def sources(call: CallSite) -> list[str]:
    return names(call.sources())


def test_keras_still_tells_what_made_a_tensor_under_its_private_names() -> None:
    inputs = keras.Input((2,), name="given")
    layer = L.Dense(1, name="head")
    layer(inputs)
    operation, node, index = layer(inputs)._keras_history
    assert (operation, node, index) == (layer, 1, 0)
    assert layer._inbound_nodes[node].input_tensors[0] is inputs


def test_a_functional_model_is_followed_along_its_graph_each_call_of_a_layer_by_itself() -> None:
    inputs = keras.Input((4,), name="given")
    head, body = L.Dense(1, name="head"), L.Dense(4, name="body")
    model = keras.Model(inputs, [head(inputs), head(body(inputs)), keras.ops.tanh(inputs)])
    first, second, operation = output_calls(model)
    assert names([first, second]) == ["head", "head"] and type(operation.layer).__name__ == "Tanh"
    assert (sources(first), sources(second)) == (["given"], ["body"])
    assert len({call.key for call in (first, second, operation)}) == 3


@pytest.mark.parametrize("layer", [
    L.TimeDistributed(L.Dense(2, name="last")), L.SpectralNormalization(L.Dense(2, name="last")),
    keras.Sequential([L.ReLU(name="relu"), L.Dense(2, name="last")]),
    nn.SequentialCell(nn.ReLU(), L.Dense(2, name="last")),
], ids=lambda layer: type(layer).__name__)
def test_wrappers_and_sequences_end_in_their_last_layer(layer: Any) -> None:
    assert names(output_calls(layer)) == ["last"]


def test_a_bidirectional_layer_ends_in_both_and_layers_that_compute_by_themselves_in_none() -> None:
    both = L.Bidirectional(L.LSTM(2, name="lstm"))
    assert names(output_calls(both)) == ["forward_lstm", "backward_lstm"]
    for layer in (L.LSTM(2), L.MultiHeadAttention(2, 2), L.Dense(2), nn.ReLU(), nn.Dense(2, 2)):
        assert not output_calls(layer)


class Written(nn.Cell):
    """A network whose layers are assigned in another order than they are called in."""

    def __init__(self, method: Any) -> None:
        super().__init__()
        self.last = nn.Sigmoid()
        self.drop = nn.Dropout(p=0.5)
        self.fc = nn.Dense(4, 4)
        self.gate = nn.Softmax()
        self.blocks = nn.CellList([nn.ReLU(), nn.Tanh()])
        type(self).construct = method


def kinds(calls: Any) -> list[str]:
    return [type(call.layer).__name__ for call in calls]


def straight(self: Any, x: Any) -> Any:
    x = self.fc(x)
    return self.last(x)


def mapped(self: Any, x: Any, flag: bool = True) -> Any:
    y, z = self.fc(x), self.gate(x)
    if flag:
        y = self.drop(self.last(y), flag)
    return {"y": y.squeeze(-1), "z": (z, x)}


def looped(self: Any, x: Any) -> Any:
    for block in self.blocks:
        x = block(x)
    return x


def multiplied(self: Any, x: Any) -> Any:
    return self.fc(x) * self.gate(x)


def chosen(self: Any, x: Any) -> Any:
    head = self.gate if x is None else self.last
    return keras.ops.reshape(head(x), (-1, 1))


@pytest.mark.parametrize(("method", "ends", "inputs"), [
    (straight, ["Sigmoid"], [["Dense"]]),
    (mapped, ["Dense", "Dropout", "Softmax"], [[], ["Sigmoid"], []]),
    (looped, ["CellList"], [[]]),
    (multiplied, [], []),
    (chosen, ["Softmax", "Sigmoid"], [[], []]),
], ids=lambda value: getattr(value, "__name__", None))
def test_the_source_of_a_method_tells_what_it_returns(method: Any, ends: list[str], inputs: list[list[str]]) -> None:
    network = type("Network", (Written,), {})(method)
    calls = output_calls(network)
    assert kinds(calls) == ends
    assert [kinds(call.sources())[:1] for call in calls] == [expected[:1] for expected in inputs]


def test_without_a_source_the_last_layer_is_taken() -> None:
    space: dict[str, Any] = {}
    exec("def construct(self, x):\n    return self.last(x)", space)
    network = type("Network", (Written,), {})(space["construct"])
    assert kinds(output_calls(network)) == ["CellList"]
