"""Streams of Python generators: passes of their own, errors, and an end at any moment without a word."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow

import tensorflow as tf  # noqa: E402

from mixtrain.backend.tensorflow.generated import _Passes, dataset_of  # noqa: E402

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


def test_a_pass_that_was_begun_and_never_read_ends_as_any_other() -> None:
    passes = _Passes(rows)
    begun, read = passes.begin(), passes.begin()
    assert int(passes.read(read)[0]) == 0
    passes.end(begun)
    passes.end(read)
    passes.end(read)
    assert passes._reading == {}


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
