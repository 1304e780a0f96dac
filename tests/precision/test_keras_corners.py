"""Masks, layers that are not trained, state kept between batches and frozen statistics, at O2 beside float32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import amp
from tests.backends import ON_KERAS_3_10

L = keras.layers
WORDS = np.array([[3, 1, 0, 0], [2, 5, 4, 0], [6, 0, 0, 0]], np.int32)
SERIES = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)


@pytest.fixture(autouse=True)
def as_it_is() -> Iterator[None]:
    """Run the steps without compiling them: what is asked here does not depend on it."""
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    yield


def in_bfloat16(network: Any) -> amp.AppliedPlan:
    return amp.apply_plan(network, amp.plan_precision(network, "O2", cast_model_type="bfloat16"))


def test_a_mask_of_an_embedding_goes_through_a_planned_lstm() -> None:
    inputs = keras.Input((4,), dtype="int32")
    x = L.LSTM(3, return_sequences=True, name="lstm")(L.Embedding(7, 4, mask_zero=True, name="words")(inputs))
    network = keras.Model(inputs, L.GlobalAveragePooling1D(name="mean")(x))
    exact = np.asarray(network(WORDS))
    in_bfloat16(network)
    longer = np.pad(WORDS, ((0, 0), (0, 2)))
    assert network(WORDS).dtype == "float32"
    np.testing.assert_allclose(network(WORDS), exact, atol=2e-2)
    # Words that the mask hides change nothing; without it they would move the mean.
    last = L.LSTM(3, name="last")
    short = keras.Sequential([keras.Input((None,), dtype="int32"), L.Embedding(7, 4, mask_zero=True), last])
    in_bfloat16(short)
    np.testing.assert_array_equal(np.asarray(short(longer)), np.asarray(short(WORDS)))


def test_layers_that_are_not_trained_keep_their_weights_and_statistics() -> None:
    layers = [L.Dense(4, name="frozen"), L.BatchNormalization(name="norm"), L.Dense(3, name="head")]
    network = keras.Sequential([keras.Input((2,)), *layers])
    layers[0].trainable = layers[1].trainable = False
    before = [[weight.numpy().copy() for weight in layer.weights] for layer in layers]
    model = mixtrain.Model(network, "mse", keras.optimizers.SGD(0.1), amp_level="O2", cast_model_type="bfloat16")
    model.train(1, [(SERIES[:, 0], np.ones((3, 3), np.float32))], verbose=0)
    same = [
        all(np.array_equal(one, weight) for one, weight in zip(values, layer.weights, strict=True))
        for values, layer in zip(before, layers, strict=True)
    ]
    assert same == [True, True, False]


# Keras 3.10 gives NumPy its variables when a state is reset.
@pytest.mark.filterwarnings(f"{'ignore' if ON_KERAS_3_10 else 'error'}:in the future the `.dtype` attribute")
def test_a_stateful_rnn_keeps_its_state_between_batches_and_resets() -> None:
    inputs = keras.Input(batch_shape=(3, 4, 2))
    network = keras.Model(inputs, L.GRU(3, stateful=True, name="gru")(inputs))
    exact = [np.asarray(network(SERIES)) for _ in range(2)]
    layer = network.get_layer("gru")
    layer.reset_state()
    applied = in_bfloat16(network)
    result = [np.asarray(network(SERIES)) for _ in range(2)]
    np.testing.assert_allclose(result, exact, atol=2e-2)
    assert not np.allclose(exact[0], exact[1], atol=2e-2), "the state counts"
    layer.reset_state()
    np.testing.assert_array_equal(np.asarray(network(SERIES)), result[0])
    applied.undo()
    layer.reset_state()
    np.testing.assert_array_equal(np.asarray(network(SERIES)), exact[0])


class Inferring(keras.layers.Layer):
    """A normalization that is told that it does not train, whatever the network does."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.norm = L.BatchNormalization(name="norm")

    def build(self, shape: Any) -> None:
        self.norm.build(shape)

    def call(self, inputs: Any) -> Any:
        return self.norm(inputs, training=False)


def test_a_normalization_called_with_training_false_keeps_its_statistics_in_a_training_step() -> None:
    network = keras.Sequential([keras.Input((2,)), Inferring(name="held"), L.Dense(3, name="head")])
    norm = network.get_layer("held").norm
    norm.moving_mean.assign([0.5, -0.5])
    exact = np.asarray(network(SERIES[:, 0], training=True))
    model = mixtrain.Model(network, "mse", keras.optimizers.SGD(0.0), amp_level="O2", cast_model_type="bfloat16")
    model.train(1, [(SERIES[:, 0], np.ones((3, 3), np.float32))], verbose=0)
    np.testing.assert_array_equal(norm.moving_mean.numpy(), np.array([0.5, -0.5], np.float32))
    assert model.precision_report().row("held/norm").fused
    np.testing.assert_allclose(network(SERIES[:, 0], training=True), exact, atol=3e-2)


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_numbers_fall_into_the_same_bins_at_every_level(level: Any) -> None:
    mixtrain.set_context(mode=mixtrain.GRAPH_MODE)
    network = keras.Sequential([keras.Input((1,)), L.Discretization(bin_boundaries=[2048.5, 100000.0])])
    values = np.array([[2049.0], [70000.0], [200000.0]], np.float32)
    assert mixtrain.Model(network, amp_level=level).predict(values).tolist() == [[1], [1], [2]]
