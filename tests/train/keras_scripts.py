"""Scripts of the kinds that keras.io shows, small: each makes a network, its data, and the arguments of a fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import layers


@dataclasses.dataclass(frozen=True)
class Script:
    """What a script passes to `compile` and `fit`.

    Attributes:
        network: The network.
        loss: The loss, or None where the network brings it.
        optimizer: Returns the optimizer.
        x: The data, or batches.
        y: The labels, or None.
        compile: What else goes to `compile`.
        fit: What else goes to `fit`.
    """

    network: keras.Model
    loss: Any
    optimizer: Callable[[], Any]
    x: Any
    y: Any = None
    compile: dict[str, Any] = dataclasses.field(default_factory=dict)
    fit: dict[str, Any] = dataclasses.field(default_factory=dict)


def _draw() -> np.random.Generator:
    return np.random.default_rng(21)


def _images(count: int, side: int, channels: int = 1) -> np.ndarray:
    return _draw().uniform(0, 1, (count, side, side, channels)).astype("float32")


def _classes(count: int, classes: int) -> np.ndarray:
    return _draw().integers(0, classes, count)


def convnet_on_digits() -> Script:
    """Simple MNIST convnet."""
    network = keras.Sequential([
        keras.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ])
    labels = keras.utils.to_categorical(_classes(60, 10), 10)
    return Script(
        network, "categorical_crossentropy", lambda: "adam", _images(60, 12), labels, {"metrics": ["accuracy"]},
        {"batch_size": 16, "epochs": 3, "validation_split": 0.1},
    )


def words_by_convolution() -> Script:
    """Text classification from scratch: an embedding, strided convolutions, one logit."""
    network = keras.Sequential([
        keras.Input((None,), dtype="int32"), layers.Embedding(50, 8), layers.Conv1D(6, 3, strides=2, activation="relu"),
        layers.GlobalMaxPooling1D(), layers.Dense(1, activation="sigmoid"),
    ])
    words = _draw().integers(0, 50, (40, 20))
    return Script(
        network, "binary_crossentropy", lambda: "rmsprop", words, _classes(40, 2), {"metrics": ["accuracy"]},
        {"batch_size": 8, "epochs": 2, "validation_data": (words[:10], _classes(10, 2))},
    )


def reviews_by_bidirectional_lstm() -> Script:
    """Bidirectional LSTM on reviews, with masked padding."""
    words = layers.Embedding(30, 6, mask_zero=True)
    network = keras.Sequential([
        keras.Input((None,), dtype="int32"), words, layers.Bidirectional(layers.LSTM(4, return_sequences=True)),
        layers.Bidirectional(layers.LSTM(3)), layers.Dense(1, activation="sigmoid"),
    ])
    data = _draw().integers(0, 30, (32, 9))
    return Script(
        network, "binary_crossentropy", lambda: "adam", data, _classes(32, 2),
        {"metrics": ["accuracy", keras.metrics.AUC(num_thresholds=30, name="auc")]}, {"batch_size": 8, "epochs": 2},
    )


def denoising_autoencoder() -> Script:
    """Convolutional autoencoder for denoising: images are their own labels."""
    network = keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(4, 3, activation="relu", padding="same"),
        layers.MaxPooling2D(2, padding="same"), layers.Conv2DTranspose(4, 3, strides=2, padding="same"),
        layers.Conv2D(1, 3, activation="sigmoid", padding="same"),
    ])
    images = _images(30, 8)
    return Script(
        network, "binary_crossentropy", lambda: "adam", images + 0.1, images,
        fit={"batch_size": 10, "epochs": 2, "validation_data": (images[:6], images[:6])},
    )


def structured_data() -> Script:
    """Structured data: preprocessing layers inside of a functional network with a dict of inputs."""
    draw = _draw()
    columns = {"age": draw.uniform(20, 80, (48, 1)).astype("float32"), "kind": draw.integers(0, 4, (48, 1))}
    normalize = layers.Normalization()
    normalize.adapt(columns["age"])
    inputs = {"age": keras.Input((1,), name="age"), "kind": keras.Input((1,), dtype="int32", name="kind")}
    joined = layers.concatenate([normalize(inputs["age"]), layers.CategoryEncoding(4)(inputs["kind"])])
    outputs = layers.Dense(1, activation="sigmoid")(layers.Dense(6, activation="relu")(joined))
    return Script(
        keras.Model(inputs, outputs), "binary_crossentropy", lambda: keras.optimizers.Adam(1e-2), columns,
        _classes(48, 2)[:, None].astype("float32"), {"metrics": ["accuracy"]},
        {"batch_size": 12, "epochs": 2, "class_weight": {0: 0.7, 1: 1.6}},
    )


def tickets_with_two_ends() -> Script:
    """The functional API's tickets: two inputs, two outputs, weighted losses."""
    draw = _draw()
    title, tags = keras.Input((6,), name="title"), keras.Input((3,), name="tags")
    joined = layers.concatenate([layers.Dense(4, activation="relu")(title), tags])
    priority, department = layers.Dense(1, name="priority")(joined), layers.Dense(4, name="department")(joined)
    x = {
        "title": draw.normal(size=(40, 6)).astype("float32"), "tags": draw.integers(0, 2, (40, 3)).astype("float32"),
    }
    y = {"priority": draw.uniform(size=(40, 1)).astype("float32"), "department": _classes(40, 4)}
    loss = {
        "priority": keras.losses.BinaryCrossentropy(from_logits=True),
        "department": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    }
    options = {"loss_weights": {"priority": 1.0, "department": 0.2}, "metrics": {"department": ["accuracy"]}}
    network = keras.Model([title, tags], {"priority": priority, "department": department})
    how = {"batch_size": 10, "epochs": 2}
    return Script(network, loss, lambda: keras.optimizers.RMSprop(1e-3), x, y, options, how)


class _Block(layers.Layer):
    """A transformer block, as the tutorial writes it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = layers.MultiHeadAttention(heads, width)
        self.forward = keras.Sequential([layers.Dense(2 * width, activation="relu"), layers.Dense(width)])
        self.first, self.second = layers.LayerNormalization(), layers.LayerNormalization()

    def build(self, shape: Any) -> None:
        self.attention.build(shape, shape)
        for layer in (self.forward, self.first, self.second):
            layer.build(shape)
        super().build(shape)

    def call(self, inputs: Any) -> Any:
        inside = self.first(inputs + self.attention(inputs, inputs))
        return self.second(inside + self.forward(inside))


def transformer_block() -> Script:
    """Text classification with a transformer: a layer of layers."""
    inputs = keras.Input((10,), dtype="int32")
    hidden = layers.GlobalAveragePooling1D()(_Block(8, 2)(layers.Embedding(20, 8)(inputs)))
    network = keras.Model(inputs, layers.Dense(2, activation="softmax")(hidden))
    return Script(
        network, "sparse_categorical_crossentropy", lambda: "adam", _draw().integers(0, 20, (36, 10)), _classes(36, 2),
        {"metrics": ["accuracy"]}, {"batch_size": 12, "epochs": 2, "validation_split": 0.25},
    )


def weather_by_lstm() -> Script:
    """Time series forecasting: windows of a series, mean squared error, early stopping."""
    series = np.sin(np.arange(60, dtype="float32") / 3)
    windows = np.stack([series[start : start + 8] for start in range(50)])[..., None]
    network = keras.Sequential([keras.Input((8, 1)), layers.LSTM(5), layers.Dense(1)])
    return Script(
        network, "mse", lambda: keras.optimizers.Adam(1e-2), windows, series[8:58, None], {"metrics": ["mae"]},
        {
            "batch_size": 10, "epochs": 4, "validation_split": 0.2,
            "callbacks": lambda: [keras.callbacks.EarlyStopping("val_loss", patience=2)],
        },
    )


def variational_autoencoder() -> Script:
    """A VAE whose divergence is added in a layer; the noise is drawn by a seeded generator."""

    class Sampling(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.seeds = keras.random.SeedGenerator(7)

        def call(self, inputs: Any) -> Any:
            mean, log_variance = inputs
            self.add_loss(
                -0.05 * keras.ops.mean(1 + log_variance - keras.ops.square(mean) - keras.ops.exp(log_variance))
            )
            noise = keras.random.normal(keras.ops.shape(mean), dtype=mean.dtype, seed=self.seeds)
            return mean + keras.ops.exp(0.5 * log_variance) * noise

    inputs = keras.Input((12,))
    hidden = layers.Dense(6, activation="relu")(inputs)
    code = Sampling()([layers.Dense(2)(hidden), layers.Dense(2)(hidden)])
    network = keras.Model(inputs, layers.Dense(12, activation="sigmoid")(code))
    rows = _draw().uniform(0, 1, (32, 12)).astype("float32")
    return Script(network, "mse", lambda: "adam", rows, rows, fit={"batch_size": 8, "epochs": 2})


def transfer_learning() -> Script:
    """Transfer learning: a frozen base with batch normalization, a new head, weights for the rows."""
    base = keras.Sequential([
        keras.Input((8, 8, 3)), layers.Conv2D(6, 3), layers.BatchNormalization(), layers.GlobalAveragePooling2D(),
    ])
    base.trainable = False
    inputs = keras.Input((8, 8, 3))
    network = keras.Model(inputs, layers.Dense(1)(base(layers.Rescaling(2.0, -1.0)(inputs), training=False)))
    return Script(
        network, keras.losses.BinaryCrossentropy(from_logits=True), lambda: keras.optimizers.Adam(1e-2),
        _images(40, 8, 3), _classes(40, 2)[:, None].astype("float32"),
        {"metrics": [keras.metrics.BinaryAccuracy(name="right")], "weighted_metrics": ["mae"]},
        {"batch_size": 8, "epochs": 2, "sample_weight": _draw().uniform(0.5, 2, 40).astype("float32")},
    )


def learning_rate_schedules() -> Script:
    """Training with a schedule, a ReduceLROnPlateau beside it, and a regularized network in a subclass."""

    class Regularized(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first = layers.Dense(6, activation="tanh", kernel_regularizer="l2")
            self.last = layers.Dense(3)

        def call(self, inputs: Any) -> Any:
            return self.last(self.first(inputs))

    rows = _draw().normal(size=(45, 4)).astype("float32")
    return Script(
        Regularized(), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        lambda: keras.optimizers.SGD(0.1, momentum=0.9), rows, _classes(45, 3), {"metrics": ["accuracy"]},
        {
            "batch_size": 9, "epochs": 4,
            "callbacks": lambda: [keras.callbacks.ReduceLROnPlateau("accuracy", patience=1, min_delta=0.2)],
        },
    )


def batches_of_a_sequence() -> Script:
    """A PyDataset that makes its batches, with steps of validation."""

    class Made(keras.utils.PyDataset):
        def __len__(self) -> int:
            return 5

        def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
            draw = np.random.default_rng(index)
            return draw.normal(size=(6, 4)).astype("float32"), draw.integers(0, 3, 6)

    network = keras.Sequential([keras.Input((4,)), layers.Dense(5, activation="gelu"), layers.Dense(3)])
    return Script(
        network, keras.losses.SparseCategoricalCrossentropy(from_logits=True), lambda: "nadam", Made(),
        compile={"metrics": ["sparse_categorical_accuracy"]},
        fit={"epochs": 3, "validation_data": Made(), "validation_steps": 2},
    )


SCRIPTS: Sequence[Callable[[], Script]] = (
    convnet_on_digits, words_by_convolution, reviews_by_bidirectional_lstm, denoising_autoencoder, structured_data,
    tickets_with_two_ends, transformer_block, weather_by_lstm, variational_autoencoder, transfer_learning,
    learning_rate_schedules, batches_of_a_sequence,
)
