"""A `tf.data.Dataset` of ragged rows: ragged on TensorFlow, filled up with zeros on JAX, as in Keras."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Model

tf = pytest.importorskip("tensorflow")
layers = keras.layers
ROWS = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 1], [2], [3, 4], [1, 1, 1], [9]]


def network() -> keras.Model:
    keras.utils.set_random_seed(0)
    return keras.Sequential([
        keras.Input((None,), dtype="int32"), layers.Embedding(10, 4), layers.GlobalAveragePooling1D(), layers.Dense(1)
    ])


def results(model: Any) -> list[float]:
    lengths = np.array([[len(row)] for row in ROWS], np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((tf.ragged.constant(ROWS), lengths)).batch(4)
    losses = model.fit(dataset, epochs=2, shuffle=False, verbose=0).history["loss"]
    outputs = model.predict(dataset, verbose=0)
    return [*losses, model.evaluate(dataset, verbose=0), *outputs.ravel()]


@pytest.mark.parametrize("level", ["O0", pytest.param("O2", marks=pytest.mark.slow)])
def test_ragged_rows_train_as_in_keras(level: Any) -> None:
    theirs = network()
    theirs.compile(keras.optimizers.SGD(0.01), "mse")
    ours = Model(network(), "mse", keras.optimizers.SGD(0.01), amp_level=level)
    np.testing.assert_allclose(results(ours), results(theirs), rtol=1e-5 if level == "O0" else 5e-3)
