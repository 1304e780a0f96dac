"""Streams of Python generators: passes of their own, errors, and an end at any moment without a word."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow

import tensorflow as tf  # noqa: E402

from mixtrain.data_backend.tensorflow.generated import _Passes, dataset_of  # noqa: E402

SPECS = (tf.TensorSpec([], tf.int64), tf.TensorSpec([None], tf.float32))


def rows() -> Iterator[tuple[np.ndarray, ...]]:
    for index in range(3):
        yield np.array(index), np.ones(index, np.float32)


def numbers(dataset: Any) -> list[int]:
    return [int(row[0]) for row in dataset]


def test_each_pass_reads_a_generator_of_its_own() -> None:
    dataset = dataset_of(rows, SPECS)
    one, other = iter(dataset), iter(dataset)
    assert [int(next(one)[0]), int(next(one)[0]), int(next(other)[0])] == [0, 1, 0]
    assert numbers(dataset.repeat(2)) == [0, 1, 2, 0, 1, 2]
    assert dataset.element_spec == SPECS


def test_a_pass_ends_when_its_number_is_let_go_read_or_not() -> None:
    passes = _Passes(rows)
    begun, read = passes.begin(), passes.begin()
    assert int(passes.read(read)[0]) == 0
    del begun
    assert [*passes._reading] == [1]
    held = tf.convert_to_tensor(read)
    assert int(passes.read(held.numpy())[0]) == 1
    del held, read
    assert passes._reading == {}


def test_an_iterator_that_is_let_go_ends_its_pass_and_no_other() -> None:
    ended: list[int] = []
    numbers = iter(range(3))

    def counted() -> Iterator[tuple[np.ndarray, ...]]:
        number = next(numbers)
        try:
            yield from rows()
        finally:
            ended.append(number)

    dataset = dataset_of(counted, SPECS)
    first, second, third = (iter(dataset) for _ in range(3))
    for iterator in (first, second, third):
        next(iterator)
    del second, third, iterator
    gc.collect()
    assert sorted(ended) == [1, 2]
    assert [int(row[0]) for row in first] == [1, 2]


_TRAINED = """
import numpy as np
import keras
from mixtrain import Model

batch = np.ones((2, 3), np.float32), np.ones((2, 1), np.float32)
network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
Model(network, "mse", "sgd").train(1, [batch] * 3, dataset_sink_mode=True, verbose=0)
"""


@pytest.mark.slow
def test_training_on_rows_of_python_leaves_the_allocator_as_it_is() -> None:
    # TensorFlow 2.21 says under Python 3.11 "Memory patch applied" when it makes the first GeneratorDataset.
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "0"}
    command = [sys.executable, "-c", _TRAINED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=True)
    assert "patch" not in done.stderr


@pytest.mark.slow
def test_iterators_that_end_while_they_read_ahead_leave_no_generator(capfd: pytest.CaptureFixture[str]) -> None:
    alive: list[int] = []
    lock = threading.Lock()

    def counted() -> Iterator[tuple[np.ndarray, ...]]:
        with lock:
            alive.append(1)
        try:
            yield from rows()
        finally:
            with lock:
                alive.pop()

    dataset = dataset_of(counted, SPECS).repeat().prefetch(2)
    for count in range(40):
        iterator = iter(dataset)
        for _ in range(count % 4 + 1):
            next(iterator)
        del iterator
    gc.collect()
    assert alive == []
    assert "finalize" not in capfd.readouterr().err


def test_an_error_of_the_generator_ends_the_stream() -> None:
    def failing() -> Iterator[tuple[np.ndarray, ...]]:
        yield from rows()
        raise ValueError("no more rows")

    iterator = iter(dataset_of(failing, SPECS))
    assert [int(next(iterator)[0]) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="no more rows"):
        next(iterator)
