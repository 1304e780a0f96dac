"""A `PyDataset` that asks for workers is read by them, in order, and trains to the same numbers."""

from __future__ import annotations

import multiprocessing
import os
import threading
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain.train.read_ahead import read_ahead
from tests.backends import ON_TENSORFLOW

X = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)


class Batches(keras.utils.PyDataset):
    """Six batches of four rows, which remembers who read them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.readers: list[str] = []
        self.read: list[int] = []

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        self.readers.append(threading.current_thread().name)
        self.read.append(index)
        rows = X[4 * index : 4 * index + 4]
        return rows, rows.sum(1, keepdims=True)


class Meeting(Batches):
    """Each batch waits until a second reader has come."""

    def __init__(self) -> None:
        super().__init__(workers=2)
        self.meeting = threading.Barrier(2)

    def __getitem__(self, index: int) -> Any:
        self.meeting.wait(timeout=30)
        return super().__getitem__(index)


class ProcessNumbers(keras.utils.PyDataset):
    """Batches that hold the number of the process that read them."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[int, int]:
        return index, os.getpid()


def test_two_threads_read_at_the_same_time_and_the_order_is_kept() -> None:
    data = Meeting()
    results = list(read_ahead(data, range(6)))
    np.testing.assert_array_equal(np.concatenate([batch[0] for batch in results]), X)
    assert {name.startswith("mixtrain-batches") for name in data.readers} == {True}


def test_one_worker_reads_in_the_caller_thread_when_asked() -> None:
    data = Batches()
    batches = read_ahead(data, range(6))
    next(batches)
    assert data.read == [0] and data.readers == [threading.current_thread().name]


def test_no_more_is_read_than_the_queue_holds() -> None:
    data = Batches(workers=2, max_queue_size=2)
    batches = read_ahead(data, range(6))
    next(batches)
    batches.close()
    assert set(data.read) <= {0, 1, 2}


@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="about processes that are forked")
@pytest.mark.filterwarnings("ignore:This process")
def test_processes_read_where_the_dataset_asks_for_them_and_jax_does_not_run() -> None:
    results = list(read_ahead(ProcessNumbers(workers=2, use_multiprocessing=True), range(4)))
    assert [index for index, _ in results] == [0, 1, 2, 3]
    assert (os.getpid() in {number for _, number in results}) is not ON_TENSORFLOW


def test_what_a_worker_raises_comes_in_the_place_of_its_batch() -> None:
    class Broken(Batches):
        def __getitem__(self, index: int) -> Any:
            if index == 2:
                raise KeyError("row 9 of the file")
            return super().__getitem__(index)

    batches = read_ahead(Broken(workers=3), range(6))
    next(batches), next(batches)
    with pytest.raises(KeyError, match="row 9"):
        next(batches)


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True])
def test_training_with_workers_equals_training_without(sink: bool) -> None:
    def trained(workers: int) -> list[Any]:
        keras.utils.set_random_seed(1)
        network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model = mixtrain.Model(network, "mse", keras.optimizers.SGD(0.1))
        history = model.train(2, Batches(workers=workers), verbose=0, dataset_sink_mode=sink)
        return [history["loss"], *network.get_weights()]

    for one, two in zip(trained(1), trained(3), strict=True):
        np.testing.assert_array_equal(one, two)


def test_an_endless_dataset_gives_one_batch_after_another() -> None:
    class Endless(Batches):
        @property
        def num_batches(self) -> None:
            return None

    keras.utils.set_random_seed(1)
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    data = Endless()
    mixtrain.Model(network, "mse", "sgd").fit(data, epochs=2, steps_per_epoch=3, verbose=0)
    assert data.read[-6:] == [0, 1, 2, 3, 4, 5]
