"""Layers work inside Keras models, where the batch size is not known while the model is built."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from mixtrain.nn.layer import (
    AvgPool2d,
    BatchNorm1d,
    BatchNorm2d,
    Conv2d,
    Dense,
    Dropout,
    Flatten,
    LayerNorm,
    MaxPool2d,
    ReLU,
    SequentialCell,
)


@pytest.mark.slow
def test_a_keras_model_of_cells_trains() -> None:
    cells = SequentialCell(
        Conv2d(1, 4, 3, 2), BatchNorm2d(4), ReLU(), Dropout(p=0.1), MaxPool2d(2, 2), AvgPool2d(2, 2), Flatten(),
        Dense(16, 8), BatchNorm1d(8), LayerNorm((8,)), Dense(8, 3),
    )
    inputs = keras.Input((1, 16, 16))
    model = keras.Model(inputs, cells(inputs))
    assert model.output_shape == (None, 3)
    model.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((16, 1, 16, 16)).astype(np.float32), np.arange(16) % 3
    losses = model.fit(x, y, batch_size=8, epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert (cells[1].moving_mean.asnumpy() != 0).all()
