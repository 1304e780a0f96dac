"""Dense gives the reference's numbers, and refuses what does not fit."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.backend.info import JitChoice
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16, float32
from mixtrain.nn.layer import Dense, ReLU, SequentialCell
from mixtrain.seed import set_seed
from tests.nn.reference import case

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "nobias": {"has_bias": False},
    "rank3": {},
    "relu": {"activation": "relu"},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("compiled", [False, True])
def test_output_is_the_references(name: str, compiled: bool) -> None:
    expected = case(f"dense_{name}")
    dense = Dense(4, 3, **OPTIONS[name])
    dense.weight.set_data(expected["weight"])
    if dense.has_bias:
        dense.bias.set_data(expected["bias"])
    run = backend.compile_function(dense, choice=JitChoice(False, "test")) if compiled else dense
    assert np.abs(backend.to_numpy(run(Tensor(expected["x"]))) - expected["y"]).max() < 1e-5


def test_a_vector_gives_a_vector() -> None:
    dense = Dense(4, 3, weight_init="ones", bias_init=2.0)
    assert backend.to_numpy(dense(Tensor([1.0, 2.0, 3.0, 4.0]))).tolist() == [12.0, 12.0, 12.0]


def test_parameters_have_the_references_names_shapes_and_bounds() -> None:
    set_seed(1)
    dense = Dense(400, 120)
    assert [(p.name, tuple(p.shape)) for p in dense.get_parameters()] == [("weight", (120, 400)), ("bias", (120,))]
    for parameter in dense.get_parameters():
        assert 0.9 / math.sqrt(400) < np.abs(parameter.asnumpy()).max() <= 1 / math.sqrt(400)


def test_same_seed_gives_the_same_weights() -> None:
    weights = []
    for _ in range(2):
        set_seed(5)
        weights.append(Dense(4, 3).weight.asnumpy())
    assert (weights[0] == weights[1]).all()


@pytest.mark.parametrize("activation", ["sigmoid", ReLU(), keras.layers.ReLU(), keras.ops.tanh])
def test_activation_may_be_a_name_a_cell_a_keras_layer_or_a_function(activation: Any) -> None:
    dense = Dense(2, 1, "ones", "zeros", activation=activation)
    assert dense.activation_flag
    expected = {"sigmoid": 1 / (1 + math.exp(1.0))}.get(activation) if isinstance(activation, str) else None
    if expected is None:
        expected = math.tanh(-1.0) if activation is keras.ops.tanh else 0.0
    assert backend.to_numpy(dense(Tensor([[-2.0, 1.0]]))).item() == pytest.approx(expected, abs=1e-6)


def test_unknown_activation_offers_the_nearest() -> None:
    with pytest.raises(ValueError, match='Dense: activation must be one of relu, .*. Write activation="relu"'):
        Dense(2, 1, activation="ReLU")
    with pytest.raises(TypeError, match="activation must be a name, a Cell or a function"):
        Dense(2, 1, activation=3)


def test_representation_is_the_references() -> None:
    assert repr(Dense(100, 200)) == "Dense(input_channels=100, output_channels=200, has_bias=True)"
    assert repr(Dense(1, 2, has_bias=False)) == "Dense(input_channels=1, output_channels=2)"


@pytest.mark.parametrize("half", [float16, bfloat16])
def test_formats_follow_input_weight_and_to_float(half: Any) -> None:
    x = Tensor(np.ones((2, 4)), half)
    assert Dense(4, 3)(x).dtype == float32
    dense = Dense(4, 3).to_float(half)
    assert dense(Tensor(np.ones((2, 4)), float32)).dtype == half
    assert dense.weight.stored_dtype == float32


def test_wrong_size_names_the_cell_the_axis_and_the_cure() -> None:
    net = SequentialCell(Dense(4, 3))
    message = r"^Dense 0: expected 4 channels on axis 1; got 5 \(input shape \(2, 5\)\). Write Dense\(in_channels=5"
    with pytest.raises(ValueError, match=message):
        net(Tensor(np.ones((2, 5), np.float32)))
    with pytest.raises(ValueError, match="the input must have an axis"):
        net(Tensor(1.0))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"in_channels": 0}, ValueError, "in_channels must be at least 1"),
        ({"out_channels": 1.0}, TypeError, "out_channels must be an int"),
        ({"has_bias": None}, TypeError, "has_bias must be True or False"),
        ({"weight_init": np.ones((4, 3), np.float32)}, ValueError, r"init must have shape \(3, 4\)"),
    ],
)
def test_bad_argument_is_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Dense(**{"in_channels": 4, "out_channels": 3, **arguments})
