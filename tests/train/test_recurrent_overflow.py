"""An overflow planted inside a recurrent layer: the step is skipped, the layer named, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, nn

ROWS, STEPS, LENGTH, WIDTH = 4, 4, 3, 8
HUGE = 6e4  # Finite in float16; the sum of two products is not.
layers = keras.layers


def keras_network(layer: keras.Layer) -> keras.Model:
    """Return a network around a recurrent layer that multiplies its state by huge weights."""
    network = keras.Sequential([keras.Input((LENGTH, 2)), layers.Dense(WIDTH, name="first"), layer, layers.Dense(1)])
    kernel = next(weight for weight in layer.weights if "recurrent_kernel" in weight.path)
    values = np.full(kernel.shape, HUGE, np.float32)
    if kernel.shape[1] == 3 * WIDTH:
        values[:, :-WIDTH] = 0.0  # A GRU whose update gate is saturated keeps its state as it is.
    kernel.assign(values)
    network.get_layer("first").kernel.assign(np.ones((2, WIDTH), np.float32))
    kernel = next(weight for weight in layer.weights if weight.path.endswith("/kernel"))
    kernel.assign(np.full(kernel.shape, 1 / 64, np.float32))
    return network


class OfCells(nn.Cell):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.rec, self.head = layer(2, WIDTH, has_bias=False, batch_first=True), nn.Dense(WIDTH, 1)
        kernel = next(value for value in self.rec.get_parameters() if "weight_hh" in value.name)
        kernel.set_data(mixtrain.Tensor(np.full(kernel.shape, HUGE, np.float32)))

    def construct(self, x: Any) -> Any:
        """Return a number for each row."""
        return self.head(self.rec(x)[0][:, -1])


# The state overflows after a step of ones, by an activation without a bound; of zeros it stays 0.
STATES: dict[str, Callable[[], Any]] = {
    "LSTM": lambda: layers.LSTM(WIDTH, "relu", name="rec"),
    "GRU": lambda: layers.GRU(WIDTH, "relu", name="rec"),
    "SimpleRNN": lambda: layers.SimpleRNN(WIDTH, "relu", name="rec"),
    "LSTM of cells": lambda: layers.RNN(layers.LSTMCell(WIDTH, "relu"), name="rec"),
    "Bidirectional": lambda: layers.Bidirectional(layers.GRU(WIDTH, "relu"), name="rec"),
}
# The gradient of the state overflows, of zeros: gates that are saturated have none.
GRADIENTS: dict[str, Callable[[], Any]] = {
    "LSTM": lambda: keras_network(layers.LSTM(WIDTH, name="rec")),
    "GRU": lambda: keras_network(layers.GRU(WIDTH, name="rec")),
    "nn.LSTM": lambda: OfCells(nn.LSTM),
    "nn.GRU": lambda: OfCells(nn.GRU),
}


def trained(network: Any, batches: list[Any], *, level: str, sink: bool) -> tuple[Model, Any]:
    """Train for an epoch in which overflows are explained; return the Model and the history."""
    if isinstance(network, nn.Cell):
        optimizer: Any = nn.SGD(network.trainable_params(), 0.001)
    else:
        optimizer = keras.optimizers.SGD(0.001)
    manager = DynamicLossScaleManager(2.0**13, 2, 100)
    model = Model(network, "mse", optimizer, amp_level=level, loss_scale_manager=manager, explain_overflow=True)
    return model, model.train(1, batches, dataset_sink_mode=sink, verbose=0)


def values(network: Any) -> list[np.ndarray]:
    is_cell = isinstance(network, nn.Cell)
    return [value.asnumpy() for value in network.get_parameters()] if is_cell else network.get_weights()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Model. in epoch")
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize("name", STATES)
def test_a_state_that_overflows(name: str, level: str, sink: bool) -> None:
    network = keras_network(STATES[name]())
    batches = [(np.full((ROWS, LENGTH, 2), step == 1, np.float32), np.ones((ROWS, 1), np.float32)) for step in range(4)]
    model, history = trained(network, batches, level=level, sink=sink)
    assert history["skipped_steps"] == [1] and np.isfinite(history["loss"]).all()
    (overflow,) = model.overflows
    assert (overflow.step, overflow.finding.kind) == (2, "forward")
    assert "output of layer rec" in str(overflow) and "a smaller loss scale cannot help" in str(overflow)
    assert all(np.isfinite(value).all() for value in values(network))


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_a_gradient_of_a_state_that_overflows(name: str, level: str, sink: bool) -> None:
    network = GRADIENTS[name]()
    before = values(network)
    batches = [(np.zeros((ROWS, LENGTH, 2), np.float32), np.ones((ROWS, 1), np.float32)) for _ in range(4)]
    model, history = trained(network, batches, level=level, sink=sink)
    assert history["skipped_steps"] == [STEPS] and np.isfinite(history["loss"]).all()
    assert [overflow.step for overflow in model.overflows] == [1, 2, 3, 4]
    for overflow in model.overflows:
        assert "gradient of " in str(overflow) and "layer rec" in str(overflow) and "forward finite" in str(overflow)
    assert all(map(np.array_equal, before, values(network)))
