"""Many Models in one process: what each of them compiled is freed with it."""

from __future__ import annotations

import gc
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Model, nn
from mixtrain.dataset import NumpySlicesDataset
from tests.backends import ON_TENSORFLOW

X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
# What tracing makes: the graphs of TensorFlow, the equations that JAX notes while it traces.
TRACED = "FuncGraph" if ON_TENSORFLOW else "TracingEqn"


def of_keras() -> Model:
    dense = keras.layers.Dense
    network = keras.Sequential([keras.Input((6,)), dense(4), keras.layers.BatchNormalization(), dense(1)])
    return Model(network, "mse", "adam", amp_level="O2", cast_model_type="bfloat16")


def of_cells() -> Model:
    network = nn.SequentialCell(nn.Dense(6, 4), nn.BatchNorm1d(4), nn.Dropout(p=0.5), nn.Dense(4, 1))
    return Model(network, nn.MSELoss(), nn.Adam(network.trainable_params(), 1e-2), amp_level="O2")


def left(make: Any, times: int) -> list[int]:
    """Return how much that tracing made is alive after each of several Models was trained and dropped."""
    results = []
    for _ in range(times):
        keras.backend.clear_session()
        model = make()
        model.train(1, [(X, X[:, :1])], verbose=0)
        model.predict(X)
        del model
        gc.collect()
        results.append(sum(type(value).__name__ == TRACED for value in gc.get_objects()))
    return results


@pytest.mark.slow
@pytest.mark.parametrize("make", [of_keras, of_cells])
def test_models_leave_no_traces_behind(make: Any) -> None:
    result = left(make, 3)
    assert result[2] <= result[0]


@pytest.mark.slow
@pytest.mark.parametrize("make", [of_keras, of_cells])
def test_twenty_folds_with_a_cleared_session_leave_as_much_as_two(make: Any) -> None:
    result = left(make, 20)
    assert result[1:] == [result[1]] * 19


@pytest.mark.slow
@pytest.mark.tensorflow
def test_calls_of_train_in_sink_feed_leave_no_stream_of_python_rows_behind() -> None:
    model, data = of_cells(), NumpySlicesDataset((X, X[:, :1]), shuffle=False).batch(4)
    results = []
    for _ in range(20):
        model.train(1, data, verbose=0, dataset_sink_mode=True)
        gc.collect()
        results.append(sum(type(value).__name__ == TRACED for value in gc.get_objects()))
    assert results[10:] == [results[10]] * 10
