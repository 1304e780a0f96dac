"""A Keras classifier of vectors and its data, trained on one device and on several."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import keras
import numpy as np

import mixtrain
from mixtrain import Model, backend
from mixtrain.distribution import data_parallel


class Records(mixtrain.Callback):
    """Keeps what every step reports."""

    observes_only = True

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Any] = []

    def on_train_step_end(self, run_context: Any) -> None:
        self.steps.append(run_context.original_args().step_results)

    def column(self, name: str) -> np.ndarray:
        """Return a column of all steps."""
        return np.concatenate([np.ravel(getattr(step, name)) for step in self.steps])


@dataclasses.dataclass
class Run:
    """What a run came to.

    Attributes:
        network: The network.
        model: The Model.
        records: What its steps reported.
        history: What `train` returned.
        weights: The values of the network's variables, as they are then.
    """

    network: keras.Model
    model: Model
    records: Records
    history: Any
    weights: list[np.ndarray] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.weights = values_of(self.network)


def values_of(network: keras.Model) -> list[np.ndarray]:
    """Return what a network's variables hold."""
    return [backend.to_numpy(value) for value in network.weights]


def mlp(*more: keras.Layer) -> keras.Model:
    """Return a classifier of vectors of 6 numbers into 3 classes."""
    layers = keras.layers
    return keras.Sequential([keras.Input((6,)), layers.Dense(16, "tanh"), *more, layers.Dense(3)])


def cnn() -> keras.Model:
    """Return a classifier of images of 8 x 8 into 3 classes, without batch statistics."""
    layers = keras.layers
    return keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(16, 3, activation="relu"), layers.Flatten(), layers.Dense(3),
    ])


def images(*sizes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return batches of so many images, the same in every call."""
    draw = np.random.default_rng(2)
    return [
        (draw.standard_normal((size, 8, 8, 1)).astype(np.float32), draw.integers(0, 3, size).astype(np.int32))
        for size in sizes
    ]


def batches(*sizes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return batches of so many rows, the same in every call."""
    draw = np.random.default_rng(1)
    return [
        (draw.standard_normal((size, 6)).astype(np.float32), draw.integers(0, 3, size).astype(np.int32))
        for size in sizes
    ]


def train(
    devices: int | None, data: Any, *more: keras.Layer, sink: bool = False, loss: Any = None, optimizer: Any = None,
    reduce_dtype: str = "float32", network: Any = mlp, **options: Any,
) -> Run:
    """Train a classifier for one epoch, on one device (None) or several."""
    mixtrain.set_seed(0)
    keras.utils.clear_session(free_memory=False)
    made = network(*more)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True) if loss is None else loss
    with contextlib.nullcontext() if devices is None else data_parallel(devices, reduce_dtype=reduce_dtype):
        model = Model(made, loss, optimizer or keras.optimizers.Adam(0.01), **options)
    records = Records()
    history = model.train(1, data, records, dataset_sink_mode=sink, verbose=0)
    return Run(made, model, records, history)


def farthest(one: Run, other: Run) -> float:
    """Return the largest difference between the losses or the weights of two runs."""
    pairs = [(one.records.column("loss"), other.records.column("loss")), *zip(one.weights, other.weights, strict=True)]
    return max(float(np.abs(mine - theirs).max()) for mine, theirs in pairs)
