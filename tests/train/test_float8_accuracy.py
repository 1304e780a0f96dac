"""Networks with products in float8 learn as well as in float32: LeNet-5 on digits, a transformer on made-up words."""

from __future__ import annotations

import functools
from typing import Any, Final

import keras
import numpy as np
import pytest

import mixtrain
from examples.lenet_digits import LeNet5, load_digits
from mixtrain import Model, nn
from mixtrain.dataset import NumpySlicesDataset

pytestmark = pytest.mark.slow
L = keras.layers
SEEDS: Final = (1, 2, 3)
# The largest loss of accuracy.
TOLERANCE: Final = 0.005
WORDS: Final = 32


@functools.cache
def lenet_accuracy(seed: int, rule: str | None) -> float:
    pytest.importorskip("sklearn")
    mixtrain.set_seed(seed)
    images, labels = load_digits()
    split = len(images) * 4 // 5
    network = LeNet5()
    level = {} if rule is None else {"amp_level": "O2", "cast_model_type": "bfloat16"}
    if rule is not None:
        # Its last layers are small: the level would leave them in bfloat16.
        for layer in (network.fc1, network.fc2):
            mixtrain.to_float(layer, rule)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(network.trainable_params(), 0.02, 0.9)
    model = Model(network, loss, optimizer, {"accuracy"}, **level)
    model.train(12, NumpySlicesDataset((images[:split], labels[:split])).batch(32, True), verbose=0)
    assert rule is None or sum(row.float8 is not None for row in model.precision_report().rows) == 2
    return float(model.eval(NumpySlicesDataset((images[split:], labels[split:])).batch(60))["accuracy"])


def sentences(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return words and what follows each: one of two successors, which the word before decides."""
    draw = np.random.default_rng(seed)
    successors = np.stack([np.random.default_rng(7).permutation(WORDS), np.random.default_rng(8).permutation(WORDS)])
    words = np.zeros((count, 17), np.int32)
    words[:, :2] = draw.integers(0, WORDS, (count, 2))
    for place in range(2, 17):
        words[:, place] = successors[words[:, place - 2] % 2, words[:, place - 1]]
    return words[:, :-1], words[:, 1:]


def transformer() -> keras.Model:
    """Return a causal transformer of two blocks."""
    tokens = keras.Input((16,), dtype="int32")
    places = L.Embedding(16, 64)(keras.ops.arange(16))
    x = L.Embedding(WORDS, 64)(tokens) + places
    for _ in range(2):
        normed = L.LayerNormalization()(x)
        x = x + L.MultiHeadAttention(2, 32)(normed, normed, use_causal_mask=True)
        x = x + L.Dense(64)(L.Dense(128, "gelu")(L.LayerNormalization()(x)))
    return keras.Model(tokens, L.Dense(WORDS)(L.LayerNormalization()(x)))


@functools.cache
def transformer_accuracy(seed: int, rule: str | None) -> float:
    keras.utils.set_random_seed(seed)
    network, loss = transformer(), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    level: Any = {} if rule is None else {"amp_level": "O2", "cast_model_type": rule}
    model = Model(network, loss, keras.optimizers.Adam(2e-3), ["accuracy"], **level)
    train, test = sentences(seed, 4096), sentences(100, 512)
    model.fit(*train, batch_size=64, epochs=6, verbose=0, dataset_sink_mode=True)
    assert rule is None or sum(row.float8 is not None for row in model.precision_report().rows) == 12
    # The first word is followed by any.
    predicted = np.asarray(model.predict(test[0])).argmax(-1)
    return float((predicted == test[1])[:, 1:].mean())


@pytest.mark.parametrize("rule", ["float8", "float8_delayed"])
@pytest.mark.parametrize("accuracy", [lenet_accuracy, transformer_accuracy], ids=["LeNet-5", "transformer"])
def test_float8_learns_as_well_as_float32(accuracy: Any, rule: str) -> None:
    plain, narrow = ([accuracy(seed, each) for seed in SEEDS] for each in (None, rule))
    assert min(plain) > 0.9
    assert np.mean(narrow) >= np.mean(plain) - TOLERANCE
