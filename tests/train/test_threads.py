"""Several threads: Models of networks of their own train as alone, a network that is in use is refused to others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model, backend, nn
from mixtrain.train.one_thread import OneThread, use_of

X = np.random.default_rng(0).normal(size=(32, 6)).astype(np.float32)
DATA = [(X[start : start + 8], X[start : start + 8].sum(1, keepdims=True)) for start in range(0, 32, 8)]


def of_keras(level: Any = "O2") -> Model:
    keras.utils.set_random_seed(1)
    dense = keras.layers.Dense
    network = keras.Sequential([keras.Input((6,)), dense(8), keras.layers.BatchNormalization(), dense(1)])
    scale = mixtrain.DynamicLossScaleManager(2**10)
    return Model(network, "mse", "adam", amp_level=level, cast_model_type="bfloat16", loss_scale_manager=scale)


class _Cells(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Dense(6, 8), nn.Dense(8, 1)

    def construct(self, x: Any) -> Any:
        return self.last(self.first(x))


def of_cells() -> Model:
    mixtrain.set_seed(2)
    network = _Cells()
    return Model(network, nn.MSELoss(), nn.Adam(network.trainable_params(), 1e-2))


def in_threads(*calls: Callable[[], Any]) -> list[Any]:
    """Return what calls return, or raise, each in a thread of its own."""
    result: list[Any] = [None] * len(calls)

    def run(place: int, call: Callable[[], Any]) -> None:
        try:
            result[place] = call()
        except Exception as error:
            result[place] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return result


def trained(model: Model, sink: bool) -> tuple[list[float], list[bytes]]:
    history = model.train(4, DATA, dataset_sink_mode=sink, verbose=0)
    return history["loss"], [backend.to_numpy(v).tobytes() for v in model.train_network.network.get_parameters()]


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
def test_models_of_several_levels_train_in_threads_as_alone(sink: bool) -> None:
    makes = (of_keras, lambda: of_keras("O0"), of_cells)
    alone = [trained(make(), sink) for make in makes]
    models = [make() for make in makes]
    assert in_threads(*(lambda model=model: trained(model, sink) for model in models)) == alone


@pytest.mark.slow
def test_a_network_predicts_while_another_one_trains() -> None:
    alone, other = of_keras(), of_cells()
    expected, losses = other.predict(X[:4]).asnumpy(), trained(alone, False)
    model = of_keras()
    many = in_threads(lambda: trained(model, False), lambda: [other.predict(X[:4]).asnumpy() for _ in range(50)])
    assert many[0] == losses and all(np.array_equal(predicted, expected) for predicted in many[1])


@pytest.mark.slow
@pytest.mark.parametrize("call", ["train", "eval", "predict", "evaluate"])
def test_a_network_that_trains_is_refused_to_other_threads_in_a_sentence(call: str) -> None:
    model, errors = of_keras(), []
    calls = {
        "train": lambda: model.train(1, DATA, verbose=0), "eval": lambda: model.eval(DATA),
        "predict": lambda: model.predict(X[:4]), "evaluate": lambda: model.evaluate(X, X[:, :1]),
    }

    class Asking(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            errors.extend(in_threads(calls[call]))

    expected = trained(of_keras(), False)
    history = model.train(4, DATA, callbacks=Asking(), verbose=0)
    assert len(errors) == 4 * len(DATA)
    assert {str(error) for error in errors} == {
        f"Model.{call}: expected a network that no other thread uses; got one that is busy in Model.train of another "
        "thread. Write thread.join() before, or give each thread a network of its own."
    }
    assert history["loss"] == expected[0]
    assert in_threads(calls[call])[0] is not None and not isinstance(in_threads(calls[call])[0], Exception)


@pytest.mark.slow
def test_a_callback_may_predict_with_the_network_that_trains() -> None:
    model, shapes = of_keras(), []

    class Predicting(mixtrain.Callback):
        def on_train_epoch_end(self, run_context: Any) -> None:
            shapes.append(model.predict(X[:4]).shape)

    model.train(2, DATA, callbacks=Predicting(), verbose=0)
    assert shapes == [(4, 1)] * 2


def test_two_models_of_one_network_share_its_use_and_an_error_gives_it_back() -> None:
    model = of_keras()
    assert use_of(model.predict_network) is use_of(Model(model.predict_network).predict_network)
    use = OneThread()
    with pytest.raises(KeyError), use.of("Model.train"):
        raise KeyError
    assert in_threads(lambda: use.of("Model.eval").__enter__()) == [None]


class _Rows(keras.utils.PyDataset):
    def __len__(self) -> int:
        return len(DATA)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        return DATA[index]


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
def test_a_py_dataset_trains_as_its_batches_do_whatever_workers_it_asks_for(sink: bool) -> None:
    def losses(data: Any) -> list[float]:
        return list(of_cells().train(2, data, dataset_sink_mode=sink, verbose=0)["loss"])

    threads, processes = _Rows(workers=3), _Rows(workers=2, use_multiprocessing=True)
    assert losses(threads) == losses(processes) == losses(DATA)
