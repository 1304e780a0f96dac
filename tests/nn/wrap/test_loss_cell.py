"""A network with its loss: every kind of loss, in float32, with what Keras layers add by themselves."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import amp, backend, nn

X = mixtrain.Tensor([[1.0, 2.0], [3.0, 5.0]])
LABEL = mixtrain.Tensor([[1.0], [2.0]])


def _summing() -> nn.Dense:
    return nn.Dense(2, 1, weight_init="ones", has_bias=False)


@pytest.mark.parametrize(
    "loss",
    [
        nn.MSELoss(), keras.losses.MeanSquaredError(), "mse", "mean_squared_error", "MeanSquaredError",
        keras.losses.mean_squared_error, lambda outputs, label: keras.ops.mean((outputs - label) ** 2),
    ],
    ids=["cell", "keras object", "alias", "function name", "class name", "keras function", "function"],
)
def test_every_kind_of_loss_gives_the_same_number(loss: Any) -> None:
    assert float(nn.WithLossCell(_summing(), loss)(X, LABEL)) == 20.0


@pytest.mark.parametrize("loss", ["categorical_crossentropy", keras.losses.categorical_crossentropy])
def test_a_keras_function_gets_the_label_first(loss: Any) -> None:
    outputs, label = mixtrain.Tensor([[0.25, 0.75]]), mixtrain.Tensor([[0.0, 1.0]])
    result = float(nn.WithLossCell(nn.SequentialCell(), loss)(outputs, label))
    assert result == pytest.approx(-np.log(0.75))


def test_a_function_of_ones_own_gets_the_outputs_first() -> None:
    cell = nn.WithLossCell(_summing(), lambda outputs, label: keras.ops.sum(outputs - label))
    assert float(cell(X, LABEL)) == 8.0


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        (5, TypeError, "WithLossCell: loss_fn must be a Cell, a Keras loss or a function; got int 5"),
        (nn.MSELoss, TypeError, r"got type .*MSELoss.*Write loss_fn=nn.MSELoss\(\)"),
        (keras.losses.MeanSquaredError, TypeError, "loss_fn must be a Cell, a Keras loss or a function"),
        ("no such loss", ValueError, "no such loss"),
    ],
)
def test_what_is_no_loss_is_refused(loss: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        nn.WithLossCell(_summing(), loss)


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_the_loss_is_computed_in_float32_whatever_the_network_returns(level: str) -> None:
    seen = []

    def loss(outputs: Any, label: Any) -> Any:
        seen.append((outputs.dtype.name, float(outputs[0, 0])))
        return keras.ops.sum(outputs)

    network = nn.Dense(1, 1, weight_init=1.0, has_bias=False).to_float(mixtrain.float16)
    nn.WithLossCell(amp.auto_mixed_precision(network, level), loss)(mixtrain.Tensor([[0.1]]), LABEL)
    assert seen == [("float32", float(np.float16(0.1)))]


@pytest.mark.parametrize("wrap", [lambda layer: layer, lambda layer: nn.SequentialCell(layer)])
def test_a_regulariser_of_a_keras_layer_is_part_of_the_loss(wrap: Any) -> None:
    penalty = keras.regularizers.L2(1)
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", kernel_regularizer=penalty)
    layer.build((None, 2))
    assert float(nn.WithLossCell(wrap(layer), "mse")(X, LABEL)) == 22.0


def test_the_backbone_is_what_was_given() -> None:
    network, layer = _summing(), keras.layers.Dense(1)
    assert nn.WithLossCell(network, "mse").backbone_network is network
    assert nn.WithLossCell(layer, "mse").backbone_network is layer


def test_parameters_keep_the_networks_names() -> None:
    network = nn.SequentialCell(_summing())
    assert [parameter.name for parameter in nn.WithLossCell(network, "mse").trainable_params()] == ["0.weight"]


def test_an_eval_cell_returns_loss_outputs_and_label() -> None:
    loss, outputs, label = nn.WithEvalCell(_summing().to_float(mixtrain.float16), nn.MSELoss())(X, LABEL)
    assert (float(loss), outputs.dtype.name) == (20.0, "float32")
    assert backend.to_numpy(outputs).tolist() == [[3.0], [8.0]]
    assert backend.to_numpy(label).tolist() == [[1.0], [2.0]]


def test_an_eval_cell_without_a_loss_gives_zero() -> None:
    assert float(nn.WithEvalCell(_summing(), None)(X, LABEL)[0]) == 0.0
