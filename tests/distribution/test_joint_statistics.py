"""Under a `keras.distribution` batch normalization has the statistics of all rows, as one device and Keras's `fit`."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, nn
from mixtrain.distribution import fully_sharded
from tests.backends import ON_TENSORFLOW
from tests.distribution.networks import batches, mlp, values_of

pytestmark = pytest.mark.skipif(ON_TENSORFLOW, reason="Keras divides weights with JAX alone")
# One batch overflows in the rows of one device.
DATA = batches(*[8] * 6)
DATA[3][0][1, 0] = np.inf


def of_keras(**options: Any) -> Any:
    return mlp(keras.layers.BatchNormalization(momentum=0.7, **options))


def of_cells() -> Any:
    return nn.SequentialCell(nn.Dense(6, 16), nn.BatchNorm1d(16), nn.Dense(16, 3))


class Masked(keras.layers.Layer):
    """Normalizes rows but those that begin with a negative number."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = keras.layers.BatchNormalization()

    def build(self, shape: Any) -> None:
        self.norm.build(shape)

    def call(self, x: Any, training: Any = None) -> Any:
        # Without the mask of the output: a loss would count the rows of each device by it.
        return self.norm(x, training=training, mask=x[:, 0] > 0) + 0.0


def trained(distribution: Any, network: Any, level: str, **options: Any) -> tuple[Any, Any, list[np.ndarray]]:
    keras.utils.set_random_seed(1)
    mixtrain.set_seed(1)
    with distribution.scope() if distribution is not None else keras.name_scope("one"):
        made = network()
        model = Model(
            made, keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.optimizers.SGD(0.01),
            amp_level=level, loss_scale_manager=DynamicLossScaleManager(1024, 2, 3), **options,
        )
        history = model.train(2, DATA, verbose=0)
    values = values_of(made) if isinstance(made, keras.Model) else [each.asnumpy() for each in made.get_parameters()]
    return history["loss"], history["skipped_steps"], values


@pytest.mark.filterwarnings("ignore:Model. in epoch")
@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("network", [
    of_keras, lambda: of_keras(axis=1), lambda: of_keras(renorm=True), lambda: mlp(Masked()), of_cells,
], ids=["last axis", "axis 1", "renorm", "masked", "cells"])
def test_losses_weights_and_statistics_are_those_of_one_device(network: Any, level: str) -> None:
    loss, skipped, values = trained(None, network, level)
    close = 1e-5 if level == "O0" else 2e-2
    for distribution in (fully_sharded(), keras.distribution.DataParallel()):
        ours = trained(distribution, network, level)
        np.testing.assert_allclose(ours[0], loss, rtol=close)
        assert ours[1] == skipped == [1, 1]
        for one, other in zip(ours[2], values, strict=True):
            np.testing.assert_allclose(one, other, rtol=close, atol=close)


def test_keras_still_computes_statistics_where_they_are_replaced() -> None:
    assert callable(keras.layers.BatchNormalization._moments)
