"""An integer that the device would wrap around is refused before its step: which column, which value, what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Model, backend
from mixtrain.dataset import NumpySlicesDataset
from tests.backends import ON_TENSORFLOW

HUGE = 2**40
X = np.random.default_rng(0).standard_normal((16, 6)).astype(np.float32)
ON_JAX = pytest.mark.skipif(ON_TENSORFLOW, reason="TensorFlow stores 64 bits")


def labels(bad: int = HUGE) -> np.ndarray:
    result = np.arange(16) % 3
    result[9] = bad  # In the third of four batches.
    return result


def batched(*columns: np.ndarray) -> list[Any]:
    return [tuple(column[rows : rows + 4] for column in columns) for rows in range(0, 16, 4)]


def classifier() -> keras.Model:
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(3, activation="softmax")])


def table() -> keras.Model:
    keras.utils.set_random_seed(1)
    ids = keras.Input((2,), dtype="int32", name="ids")
    features = keras.Input((1,), dtype="int32", name="features")
    flat = keras.layers.Flatten()(keras.layers.Embedding(8, 2)(ids))
    joined = keras.layers.Concatenate()([flat, keras.ops.cast(features, "float32")])
    return keras.Model({"ids": ids, "features": features}, keras.layers.Dense(1)(joined))


def test_a_label_of_64_bits_is_not_class_0() -> None:
    network = classifier()
    model = Model(network, "sparse_categorical_crossentropy", "sgd")
    before = network.get_weights()
    with pytest.raises(ValueError, match=f"got {HUGE}"):
        model.train(1, batched(X, labels())[2:], verbose=0)
    assert all(map(np.array_equal, network.get_weights(), before))


SOURCES: dict[str, Callable[[np.ndarray], dict[str, Any]]] = {
    "arrays": lambda y: {"x": X, "y": y, "batch_size": 4, "shuffle": False},
    "batches": lambda y: {"epoch": 1, "train_dataset": batched(X, y)},
    "lists": lambda y: {"epoch": 1, "train_dataset": [(x.tolist(), part.tolist()) for x, part in batched(X, y)]},
    "scalars": lambda y: {"epoch": 1, "train_dataset": [(x, [*part]) for x, part in batched(X, y)]},
    "pipeline": lambda y: {"epoch": 1, "train_dataset": NumpySlicesDataset((X, y), ["x", "y"], shuffle=False).batch(4)},
    "no names": lambda y: {"epoch": 1, "train_dataset": NumpySlicesDataset((X, y), shuffle=False).batch(4)},
}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_every_feed_refuses_it(source: str, feed: dict[str, Any]) -> None:
    arguments = SOURCES[source](labels())
    with pytest.raises(ValueError, match=f"got {HUGE}") as caught:
        Model(classifier(), "sparse_categorical_crossentropy", "sgd").fit(**arguments, **feed)
    if not ON_TENSORFLOW:
        column = {"pipeline": "column 'y'", "no names": "column 'column_1'"}.get(source, "column 1")
        assert f"Model: {column} of a batch must hold integers from" in str(caught.value)
        assert "Write class numbers for labels, ids % size" in str(caught.value)


@ON_JAX
def test_the_limits_are_those_of_32_bits() -> None:
    for fits in ([2**31 - 1, -(2**31)], np.uint64([2**32 - 1, 0]), np.zeros(0, np.int64), 5, [0.5]):
        assert backend.refuse_unstorable(np.asarray(fits)) is not None
    for lost in ([2**31], [-(2**31) - 1], np.uint64([2**32]), [[0, 2**32 + 1]], 2**40):
        with pytest.raises(backend.Unstorable, match=f"got {np.asarray(lost).reshape(-1)[-1]}. Write"):
            backend.refuse_unstorable(np.asarray(lost))


@ON_JAX
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ids", "features"])
def test_indices_and_features_are_refused_by_name_in_every_method(name: str) -> None:
    inputs = {"ids": np.ones((16, 2), np.int64), "features": np.ones((16, 1), np.uint64)}
    inputs[name][9] = 2**35
    batches = [({key: part[rows : rows + 4] for key, part in inputs.items()}, X[rows : rows + 4, :1])
               for rows in range(0, 16, 4)]
    model = Model(table(), "mse", "sgd")
    calls: list[Callable[[], Any]] = [
        lambda: model.train(1, batches, verbose=0), lambda: model.eval(batches), lambda: model.predict(inputs),
        lambda: model.fit(inputs, X[:, :1], verbose=0), lambda: model.evaluate(inputs, X[:, :1]),
        lambda: model.train(1, batches, dataset_sink_mode=True, verbose=0),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=rf"column 0\['{name}'\] of a batch must hold .*; got {2**35}. Write"):
            call()


@pytest.mark.slow
def test_integers_of_64_bits_that_fit_train_as_those_of_32() -> None:
    losses = []
    for dtype in (np.int64, np.int32, np.uint64):
        model = Model(classifier(), "sparse_categorical_crossentropy", "sgd")
        losses.append(model.train(1, batched(X, labels(1).astype(dtype)), verbose=0)["loss"])
    assert losses[0] == losses[1] == losses[2]
    values = np.array([[2**31 - 1], [-(2**31)]])
    total = keras.Sequential([keras.Input((1,), dtype="int32"), keras.layers.Lambda(lambda x: x)])
    assert Model(total).predict(values).tolist() == values.tolist()
