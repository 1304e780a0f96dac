"""In float32 a run equals `keras.Model.compile` and `fit`: losses, weights and the first step's gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Model, Tensor, backend, nn
from mixtrain.nn.wrap.loss_cell import WithLossCell
from tests.backends import on_jax_only_some, quick_every

layers, optimizers = keras.layers, keras.optimizers
ROWS, BATCH = 12, 4
_draw = np.random.default_rng(4)
LABELS = _draw.integers(0, 3, ROWS).astype(np.int32)


def _numbers(*shape: int) -> np.ndarray:
    return _draw.standard_normal((ROWS, *shape)).astype(np.float32)


IMAGES, LEFT, RIGHT, SERIES = _numbers(8, 8, 1), _numbers(5), _numbers(4), _numbers(6, 4)


def cnn() -> Any:
    convolution = layers.Conv2D(4, 3, activation="relu")
    return keras.Sequential(
        [keras.Input((8, 8, 1)), convolution, layers.MaxPooling2D(), layers.Flatten(), layers.Dense(3)]
    )


def two_inputs() -> Any:
    left, right = keras.Input((5,)), keras.Input((4,))
    joined = layers.Concatenate()([layers.Dense(6, activation="relu")(left), layers.Dense(6, activation="tanh")(right)])
    return keras.Model([left, right], layers.Dense(3)(joined))


def normalized() -> Any:
    convolution = layers.Conv2D(4, 3, use_bias=False)
    norm, last = layers.BatchNormalization(), layers.Dense(3)
    return keras.Sequential(
        [keras.Input((8, 8, 1)), convolution, norm, layers.ReLU(), layers.GlobalAveragePooling2D(), last]
    )


def recurrent() -> Any:
    return keras.Sequential([keras.Input((6, 4)), layers.LSTM(5), layers.Dense(3)])


def attention() -> Any:
    entry = keras.Input((6, 4))
    attended = layers.MultiHeadAttention(2, 3)(entry, entry)
    added = layers.LayerNormalization()(layers.Add()([entry, attended]))
    return keras.Model(entry, layers.Dense(3)(layers.GlobalAveragePooling1D()(added)))


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "momentum": lambda: optimizers.SGD(0.05, momentum=0.9),
    "adam": lambda: optimizers.Adam(0.01),
    "adamw": lambda: optimizers.AdamW(0.01, weight_decay=0.1),
    "clipnorm": lambda: optimizers.Adam(0.01, clipnorm=0.05),
    "clipvalue": lambda: optimizers.SGD(0.05, momentum=0.9, clipvalue=0.02),
    "global-clipnorm": lambda: optimizers.AdamW(0.01, weight_decay=0.1, global_clipnorm=0.1),
}
# Each optimizer with at least two networks, each network with at least two optimizers.
RUNS = [
    *((cnn, IMAGES, name) for name in ("momentum", "clipnorm", "global-clipnorm")),
    *((two_inputs, (LEFT, RIGHT), name) for name in ("adam", "clipvalue", "global-clipnorm")),
    *((normalized, IMAGES, name) for name in ("momentum", "adamw")),
    *((recurrent, SERIES, name) for name in ("momentum", "adam", "clipvalue")),
    *((attention, SERIES, name) for name in ("adamw", "clipnorm")),
]
NETWORKS = list({make: data for make, data, _ in RUNS}.items())


def part(data: Any, start: int) -> Any:
    """Return one batch of the data."""
    return keras.tree.map_structure(lambda column: column[start : start + BATCH], data)


def seeded(make: Callable[[], Any]) -> Any:
    keras.utils.set_random_seed(7)
    return make()


def loss() -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "data", "optimizer"),
    on_jax_only_some([pytest.param(*run, id=f"{run[0].__name__}-{run[2]}") for run in RUNS], [1, 5, 7, 9, 11]),
)
def test_two_epochs_equal_those_of_keras(make: Callable[[], Any], data: Any, optimizer: str) -> None:
    ours, theirs = seeded(make), seeded(make)
    theirs.compile(OPTIMIZERS[optimizer](), loss())
    columns = list(data) if isinstance(data, tuple) else data
    keras_history = theirs.fit(columns, LABELS, batch_size=BATCH, epochs=2, shuffle=False, verbose=0)
    batches = [(part(data, start), LABELS[start : start + BATCH]) for start in range(0, ROWS, BATCH)]
    history = Model(ours, loss(), OPTIMIZERS[optimizer]()).train(2, batches, verbose=0)
    np.testing.assert_allclose(history["loss"], keras_history.history["loss"], atol=1e-4, rtol=0)
    assert len(ours.weights) == len(theirs.weights)
    for mine, theirs_ in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(mine, theirs_, atol=1e-3, rtol=0)


@quick_every(5)
@pytest.mark.parametrize(("make", "data"), NETWORKS, ids=[make.__name__ for make, _ in NETWORKS])
def test_the_first_gradients_equal_those_of_keras(make: Callable[[], Any], data: Any) -> None:
    """Of plain SGD at rate 1 the change of a weight is its gradient; Keras's are read off `fit`."""
    ours, theirs = seeded(make), seeded(make)
    before = [backend.to_numpy(weight) for weight in theirs.trainable_variables]
    theirs.compile(optimizers.SGD(1.0), loss())
    first = part(data, 0)
    theirs.fit(list(first) if isinstance(first, tuple) else first, LABELS[:BATCH], batch_size=BATCH, verbose=0)
    results = [old - backend.to_numpy(new) for old, new in zip(before, theirs.trainable_variables, strict=True)]
    Model(ours, loss(), optimizers.SGD(1.0))  # its plan in force
    cell = WithLossCell(ours, loss()).set_train()
    inputs = keras.tree.map_structure(backend.to_tensor, (first, LABELS[:BATCH]))
    _, _, gradients = backend.value_and_gradient(lambda: (cell(*inputs),) * 2, ours.trainable_variables)
    assert len(gradients) == len(results)
    for gradient, change in zip(gradients, results, strict=True):
        np.testing.assert_allclose(backend.to_numpy(gradient), change, atol=1e-5, rtol=0)
    assert max(np.abs(change).max() for change in results) > 0.01


class Noisy(keras.Model):
    """A network without variables until it is called, whose calls draw and count, in training and not."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = layers.Dense(4), layers.Dense(3)
        self.seeds = keras.random.SeedGenerator(3)
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, name="calls")

    def call(self, x: Any) -> Any:
        self.calls.assign_add(1.0)
        return self.last(keras.random.dropout(self.first(keras.ops.reshape(x, (-1, 64))), 0.5, seed=self.seeds))


@pytest.mark.slow
def test_a_network_that_is_built_by_its_first_batch_draws_and_counts_as_in_keras() -> None:
    ours, theirs = seeded(Noisy), seeded(Noisy)
    theirs.compile(optimizers.SGD(0.05), loss())
    expected = theirs.fit(IMAGES, LABELS, batch_size=BATCH, shuffle=False, verbose=0).history
    history = Model(ours, loss(), optimizers.SGD(0.05)).fit(IMAGES, LABELS, batch_size=BATCH, shuffle=False, verbose=0)
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-6)
    assert backend.to_numpy(ours.calls) == backend.to_numpy(theirs.calls) == ROWS // BATCH
    np.testing.assert_array_equal(backend.to_numpy(ours.seeds.state), backend.to_numpy(theirs.seeds.state))


def repeated_names() -> Any:
    """A network of two models whose layers have the same names, so that their weights have the same paths."""
    def block(name: str, entry: Any) -> Any:
        inputs = keras.Input(entry.shape[1:])
        dense, norm = layers.Dense(5, "tanh", name="dense"), layers.LayerNormalization(name="norm")
        return keras.Model(inputs, norm(dense(inputs)), name=name)(entry)

    entry = keras.Input((5,))
    return keras.Model(entry, layers.Dense(3, name="dense")(block("second", block("first", entry))))


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
def test_layers_of_the_same_name_in_several_models_all_train(sink: bool) -> None:
    ours, theirs = seeded(repeated_names), seeded(repeated_names)
    assert len({weight.path for weight in ours.weights}) < len(ours.weights)
    theirs.compile(optimizers.Adam(0.01), loss())
    expected = theirs.fit(LEFT, LABELS, batch_size=BATCH, epochs=2, shuffle=False, verbose=0).history
    batches = [(LEFT[start : start + BATCH], LABELS[start : start + BATCH]) for start in range(0, ROWS, BATCH)]
    history = Model(ours, loss(), optimizers.Adam(0.01)).train(2, batches, dataset_sink_mode=sink, verbose=0)
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-5)
    for mine, theirs_ in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(mine, theirs_, atol=1e-5, rtol=0)


def test_gradients_of_weights_of_the_same_path_have_names_of_their_own() -> None:
    network = seeded(repeated_names)
    step = nn.TrainOneStepCell(nn.WithLossCell(network, loss()), optimizers.SGD(0.1), return_grad=True)
    _, gradients = step(Tensor(LEFT), Tensor(LABELS))
    parameters = nn.WithLossCell(network, loss()).parameters_dict()
    assert set(gradients) == set(parameters) and len(gradients) == len(network.trainable_weights) == 10
    assert all(one is other for one, other in zip(parameters.values(), network.weights, strict=True))
    assert {"dense/kernel", "dense/kernel#2", "dense/kernel#3", "norm/beta#2"} <= set(gradients)
