"""A warning where weights are frozen, or made trainable, after a Model was created."""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Model, nn

X = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
DATA = [(X, np.zeros((8, 2), np.float32))]


def keras_model() -> tuple[Model, Any, Any]:
    """Return a Model, a layer, and the layer's kernel."""
    layer = keras.layers.Dense(3)
    network = keras.Sequential([keras.Input((4,)), layer, keras.layers.Dense(2)])
    return Model(network, "mse", keras.optimizers.SGD(0.1), amp_level="O2"), layer, layer.kernel


def cell_model() -> tuple[Model, Any, Any]:
    layer = nn.Dense(4, 3)
    network = nn.SequentialCell(layer, nn.Dense(3, 2))
    return Model(network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.1), amp_level="O2"), layer, layer.weight


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize(("create", "attribute", "name"), [
    (keras_model, "trainable", "kernel"), (cell_model, "requires_grad", "weight"),
])
def test_freezing_a_weight_after_the_model_was_created_warns(
    create: Any, attribute: str, name: str, sink: bool
) -> None:
    model, layer, weight = create()
    model.train(1, DATA, dataset_sink_mode=sink, verbose=0)
    setattr(layer if attribute == "trainable" else weight, attribute, False)
    with pytest.warns(UserWarning, match=rf"Model.train: .* of .*{name}.*, which compiled steps ignore"):
        model.train(1, DATA, dataset_sink_mode=sink, verbose=0)


def test_weights_that_become_trainable_stay_as_they_are() -> None:
    layer = keras.layers.Dense(3, trainable=False)
    network = keras.Sequential([keras.Input((4,)), layer, keras.layers.Dense(2)])
    before = np.array(keras.ops.convert_to_numpy(layer.kernel.value))
    model = Model(network, "mse", keras.optimizers.SGD(0.1))
    layer.trainable = True
    with pytest.warns(UserWarning, match="kernel, .*bias"):
        model.fit(1, DATA, verbose=0)
    np.testing.assert_array_equal(before, keras.ops.convert_to_numpy(layer.kernel.value))


def test_freezing_before_the_model_is_created_does_not_warn() -> None:
    layer = keras.layers.Dense(3)
    network = keras.Sequential([keras.Input((4,)), layer, keras.layers.Dense(2)])
    layer.trainable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Model(network, "mse", keras.optimizers.SGD(0.1)).train(1, DATA, verbose=0)


def test_a_network_that_is_frozen_whole_before_its_first_step_trains_what_it_was_made_for() -> None:
    """As the discriminator of a GAN is frozen in the other Model: each trains the weights of when it was made."""
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    before = network.get_weights()
    model = Model(network, "mse", keras.optimizers.SGD(0.1))
    network.trainable = False
    with pytest.warns(UserWarning, match="which compiled steps ignore"):
        model.train(1, DATA, verbose=0)
    assert all(np.abs(after - first).max() > 0 for after, first in zip(network.get_weights(), before, strict=True))
