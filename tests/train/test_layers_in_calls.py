"""Layers that a call makes anew, or whose call a script transforms by JAX, train as in Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain.keras
from mixtrain import Model
from tests.backends import ON_TENSORFLOW

pytestmark = pytest.mark.skipif(ON_TENSORFLOW, reason="what JAX traces, and keeps of its traces")
layers = keras.layers
X = np.random.default_rng(0).random((8, 6)).astype(np.float32)
Y = np.random.default_rng(1).random((8, 6)).astype(np.float32)


class Noise(layers.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.seeds = keras.random.SeedGenerator(7)

    def call(self, x: Any) -> Any:
        return x + keras.random.uniform(keras.ops.shape(x), seed=self.seeds)


class MakesLayers(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.out = layers.Dense(6)

    def call(self, x: Any) -> Any:
        return self.out(Noise()(x))


def test_a_random_layer_that_each_call_makes_starts_anew_as_in_keras() -> None:
    histories = []
    for ours in (False, True):
        keras.utils.set_random_seed(0)
        network = MakesLayers()
        network(X)
        network.compile(keras.optimizers.SGD(0.1), "mse")
        trains: Any = Model(network) if ours else network
        histories.append(trains.fit(X, Y, batch_size=4, epochs=3, shuffle=False, verbose=0).history["loss"])
    assert histories[1] == pytest.approx(histories[0], rel=1e-6)


def checkpointed(layer: Any, x: Any) -> Any:
    import jax

    return jax.checkpoint(layer.call)(x)


def compiled(layer: Any, x: Any) -> Any:
    import jax

    return jax.jit(layer.call)(x)


class Transformed(layers.Layer):
    """Runs a layer by a function of it and the input."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.function, self.inner = function, layers.Dense(6)

    def build(self, shape: Any) -> None:
        self.inner.build(shape)

    def call(self, x: Any) -> Any:
        return self.function(self.inner, x)


def in_a_scope() -> Any:
    with keras.RematScope(mode="full"):
        return layers.Dense(6)


KINDS: dict[str, Callable[[], Any]] = {
    "a scope": in_a_scope,
    "jax.checkpoint": lambda: Transformed(checkpointed),
    "jax.jit": lambda: Transformed(compiled),
    "keras.remat": lambda: Transformed(lambda layer, x: keras.remat(layer.call)(x)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["Model", "prepare"])
def test_a_layer_whose_trace_jax_keeps_is_trained_under_a_plan(kind: str, way: str) -> None:
    """Each trace must read the weights of its own step: those of an earlier one are constants without a gradient."""
    changes = []
    for ours in (False, True):
        keras.utils.set_random_seed(0)
        network: Any = keras.Sequential([keras.Input((6,)), KINDS[kind](), layers.Dense(6)])
        before, optimizer, trains = network.get_weights(), keras.optimizers.SGD(0.5), network
        options: Any = {"amp_level": "O2", "cast_model_type": "bfloat16"}
        if ours and way == "prepare":
            optimizer = mixtrain.keras.prepare(network, optimizer, **options)
        network.compile(optimizer, "mse")
        if ours and way == "Model":
            trains = Model(network, **options)
        for _ in range(2):
            trains.fit(X, Y, batch_size=8, shuffle=False, verbose=0)
        changes.append([after - first for after, first in zip(network.get_weights(), before, strict=True)])
    for mine, theirs in zip(changes[1], changes[0], strict=True):
        assert np.abs(mine).max() > 0
        np.testing.assert_allclose(mine, theirs, atol=0.05 * np.abs(theirs).max())
