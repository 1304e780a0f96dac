"""Optimizers that a script holds besides the model's, or builds itself, and copies of a prepared model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain.keras
from mixtrain import Model
from tests.backends import ON_TENSORFLOW, quick_only_some

layers, ops = keras.layers, keras.ops
X = np.random.default_rng(0).random((16, 3)).astype(np.float32)
Y = X.sum(1, keepdims=True)


class TwoOptimizers(keras.Model):
    """Trains its first layer by another optimizer, whose variables it tracks, as steps on JAX must to carry them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = layers.Dense(4), layers.Dense(1)
        self.first.build((None, 3))
        self.second.build((None, 4))
        self.built = True

    def call(self, x: Any) -> Any:
        return self.second(self.first(x))

    def compile(self, optimizer: Any, another: Any) -> None:
        super().compile(optimizer=optimizer)
        another.build(self.first.trainable_variables)
        optimizer.build(self.second.trainable_variables)
        self.another, self.variables_of_another = another, another.variables

    def _symbolic_build(self, *args: Any, **options: Any) -> None:
        pass

    def train_step(self, *args: Any) -> Any:
        return self.on_tensorflow(*args) if ON_TENSORFLOW else self.on_jax(*args)

    def on_tensorflow(self, data: Any) -> Any:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = ops.mean((self(data[0]) - data[1]) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.another.apply(gradients[:2], self.first.trainable_variables)
        self.optimizer.apply(gradients[2:], self.second.trainable_variables)
        return {"loss": loss}

    def on_jax(self, state: Any, data: Any) -> Any:
        import jax

        trained, others, slots, metrics = state
        others = list(others)
        places = {id(variable): index for index, variable in enumerate(self.non_trainable_variables)}

        def loss_of(trained: Any) -> Any:
            return ops.mean((self.stateless_call(trained, others, data[0])[0] - data[1]) ** 2)

        loss, gradients = jax.value_and_grad(loss_of)(trained)
        own = [places[id(variable)] for variable in self.another.variables]
        first, values = self.another.stateless_apply([others[place] for place in own], gradients[:2], trained[:2])
        second, slots = self.optimizer.stateless_apply(slots, gradients[2:], trained[2:])
        for place, value in zip(own, values, strict=True):
            others[place] = value
        return {"loss": loss}, ([*first, *second], others, slots, metrics)


@pytest.mark.parametrize("level", quick_only_some(["O0", "O2"], (1,)))
def test_optimizers_that_scale_nothing_stay_those_of_the_step(level: Any) -> None:
    weights = []
    for ours in (False, True):
        keras.utils.set_random_seed(0)
        network = TwoOptimizers()
        network.compile(keras.optimizers.Adam(0.01), keras.optimizers.Adam(0.02))
        trains = Model(network, amp_level=level, cast_model_type="bfloat16") if ours else network
        trains.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0)
        assert type(network.another) is keras.optimizers.Adam
        weights.append(network.get_weights()[:4])
    for mine, theirs in zip(*weights, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6 if level == "O0" else 2e-2)


def test_an_optimizer_that_is_built_keeps_what_it_trains() -> None:
    network = keras.Sequential([keras.Input((3,)), layers.Dense(4), layers.Dense(1)])
    inner = keras.optimizers.Adam(0.01)
    inner.build(network.layers[1].trainable_variables)
    optimizer = mixtrain.keras.prepare(network, inner)
    assert [variable.path for variable in optimizer.trained] == [
        variable.path for variable in network.layers[1].trainable_variables
    ]


@pytest.mark.parametrize("copied", [keras.models.clone_model, copy.deepcopy])
def test_a_prepared_model_can_be_copied_as_any_compiled_one(copied: Callable[[Any], Any]) -> None:
    network = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    network.compile(mixtrain.keras.prepare(network, keras.optimizers.SGD(0.1)), "mse")
    again = copied(network)
    again.set_weights(network.get_weights())
    np.testing.assert_array_equal(again.predict(X, verbose=0), network.predict(X, verbose=0))
