"""The gradients of each layer's outputs are the same layer by layer and compiled, whatever the layout inside."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend, nn
from mixtrain.diagnostics.layer_calls import layer_gradients


def test_gradients_of_convolutions_are_the_same_layer_by_layer_and_compiled() -> None:
    network = nn.SequentialCell(
        nn.Conv2d(1, 4, 3, has_bias=True), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
        nn.Dense(36, 2),
    )
    network.set_train()
    with_loss = nn.WithLossCell(network, nn.MSELoss())
    draw = np.random.default_rng(0)
    batch = [backend.to_tensor(draw.standard_normal(shape).astype(np.float32)) for shape in ((2, 1, 6, 6), (2, 2))]

    def gradients(*columns: Any) -> list[Any]:
        result = layer_gradients(network, lambda: with_loss(*columns), 8.0)
        groups = [*result.of_outputs, *result.of_parameters.values()]
        return [gradient for group in groups for gradient in group]

    compiled = backend.compile_function(gradients, choice=backend.JitChoice(False, "a test"))
    for one, other in zip(gradients(*batch), compiled(*batch), strict=True):
        # What a pass looks at may lie channels last.
        assert keras.ops.size(one) == keras.ops.size(other)
        values = [np.sort(backend.to_numpy(each).ravel()) for each in (one, other)]
        np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-5)


RECURRENT = {
    "LSTM": lambda: keras.layers.LSTM(3, name="r"),
    "GRU": lambda: keras.layers.GRU(3, name="r"),
    "Bidirectional": lambda: keras.layers.Bidirectional(keras.layers.SimpleRNN(3), name="r"),
    "stacked cells": lambda: keras.layers.RNN([keras.layers.LSTMCell(3), keras.layers.GRUCell(3)], name="r"),
}


@pytest.mark.parametrize("name", [
    name if name == "LSTM" else pytest.param(name, marks=pytest.mark.slow) for name in RECURRENT
])
def test_cells_inside_the_loop_of_a_recurrent_layer_count_as_part_of_it(name: str) -> None:
    network = keras.Sequential([keras.Input((4, 2)), RECURRENT[name](), keras.layers.Dense(1, name="head")])
    with_loss = nn.WithLossCell(network, "mse")
    draw = np.random.default_rng(0)
    batch = [backend.to_tensor(draw.standard_normal(shape).astype(np.float32)) for shape in ((2, 4, 2), (2, 1))]
    paths: list[list[str]] = []

    def gradients(*columns: Any) -> list[Any]:
        result = layer_gradients(network, lambda: with_loss(*columns), 8.0)
        paths.append([call.path for call in result.calls])
        groups = [*result.of_outputs, *result.of_parameters.values()]
        return [gradient for group in groups for gradient in group if gradient is not None]

    one = gradients(*batch)
    other = backend.compile_function(gradients, choice=backend.JitChoice(False, "a test"))(*batch)
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(backend.to_numpy(mine), backend.to_numpy(theirs), rtol=1e-4, atol=1e-6)
    assert {tuple(called) for called in paths} == {tuple(paths[0])}
    assert "r" in paths[0] and not any("cell" in path for path in paths[0])
