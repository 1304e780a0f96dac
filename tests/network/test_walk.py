"""A network is one tree of either kind of layer, and its calls can be interposed and put back."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import nn
from mixtrain.network.interpose import interpose
from mixtrain.network.walk import all_built, children_of, is_cell, tree_of

L = keras.layers


def paths(network: Any) -> list[str]:
    return [node.path for node in tree_of(network).walk()]


def test_keras_still_lists_the_layers_inside_a_layer_under_its_private_name() -> None:
    wrapper = L.Bidirectional(L.LSTM(2, name="lstm"))
    names = [layer.name for layer in wrapper._layers]
    assert names == ["forward_lstm", "backward_lstm"]


def test_composite_layers_are_walked_through_and_shared_layers_counted_once() -> None:
    inputs = keras.Input((4, 6))
    shared = L.Dense(6, name="shared")
    x = L.MultiHeadAttention(2, 3, name="attention")(shared(inputs), shared(inputs))
    outputs = L.Bidirectional(L.LSTM(2, name="lstm"), name="both")(x)
    layer_paths = paths(keras.Model(inputs, outputs))
    assert layer_paths.count("shared") == 1
    assert {"attention/query", "attention/attention_output", "both/forward_lstm/lstm_cell"} <= set(layer_paths)
    assert len(layer_paths) == len(set(layer_paths))


def test_a_nested_sequential_lists_its_layers_and_no_twin() -> None:
    inner = keras.Sequential([keras.Input((3,)), L.Dense(2, name="a"), L.ReLU(name="b")], name="inner")
    model = keras.Sequential([keras.Input((3,)), inner, L.Dense(1, name="head")])
    assert paths(model) == ["", "inner", "inner/a", "inner/b", "head"]


def test_cells_have_dotted_paths_and_keras_layers_in_them_are_themselves() -> None:
    class Block(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Dense(2, 2)
            self.keras_dense = L.Dense(2, name="inside")

    net = nn.SequentialCell(Block(), nn.ReLU())
    assert paths(net) == ["", "0", "0.dense", "0.keras_dense", "1"]
    assert isinstance(children_of(children_of(net)["0"])["keras_dense"], L.Dense)


def test_a_cell_in_a_keras_model_is_walked_into() -> None:
    model = keras.Sequential([keras.Input((2,)), nn.CellLayer(nn.SequentialCell(nn.Dense(2, 1)), name="cells")])
    assert paths(model) == ["", "cells", "cells/SequentialCell", "cells/SequentialCell.0"]


def test_what_is_no_network_is_refused_with_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"expected a mixtrain.nn.Cell or a keras.Layer; got function"):
        tree_of(lambda x: x)
    assert not is_cell(L.Dense(1)) and is_cell(nn.ReLU())


@pytest.mark.parametrize("make", [lambda: nn.Dense(2, 2), lambda: L.Dense(2)], ids=["cell", "keras"])
def test_an_interposed_forward_is_used_and_put_back(make: Any) -> None:
    layer, x = make(), np.ones((1, 2), np.float32)
    before = np.asarray(layer(x))
    first = interpose(layer, lambda forward: lambda *a, **k: forward(*a, **k) + 1.0)
    second = interpose(layer, lambda forward: lambda *a, **k: forward(*a, **k) * 2.0)
    np.testing.assert_allclose(np.asarray(layer(x)), (before + 1) * 2, rtol=1e-6)
    second()
    np.testing.assert_allclose(np.asarray(layer(x)), before + 1, rtol=1e-6)
    first()
    np.testing.assert_array_equal(np.asarray(layer(x)), before)
    assert not {"call", "construct"} & set(vars(layer))


def test_a_network_is_built_when_all_its_layers_are_even_if_a_model_that_contains_them_is_not() -> None:
    class Container(keras.Model):
        def __init__(self, *layers: Any) -> None:
            super().__init__()
            self.parts = list(layers)

    built = L.Dense(2)
    built.build((None, 3))
    assert all_built(built) and all_built(Container(built)) and all_built(nn.Dense(2, 2))
    assert all_built(L.Rescaling(2.0)) and all_built(keras.Sequential([L.Rescaling(2.0)]))
    assert not all_built(Container()) and not all_built(Container(built, L.Dense(2)))
    assert not all_built(nn.SequentialCell([L.Dense(2)]))
