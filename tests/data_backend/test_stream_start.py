"""Starting a pass: what reads ahead is made once for a stream, and its order stays TensorFlow's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from mixtrain import data_backend

pytestmark = pytest.mark.tensorflow


def shuffled() -> tf.data.Dataset:
    return tf.data.Dataset.range(20).shuffle(20, seed=3)


def orders(passes: list[Any]) -> list[list[int]]:
    return [[int(row) for row in rows] for rows in passes]


def test_later_passes_add_nothing_to_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = tf.data.Dataset.from_tensor_slices(([0, 1, 2],))
    added: list[str] = []

    def counting(name: str) -> Callable[..., Any]:
        own = getattr(tf.data.Dataset, name)

        def call(*arguments: Any) -> Any:
            added.append(name)
            return own(*arguments)

        return call

    for name in ("prefetch", "take", "with_options"):
        monkeypatch.setattr(tf.data.Dataset, name, counting(name))
    # A Model wraps the same dataset each time that it trains.
    for _ in range(3):
        pipeline = data_backend.Pipeline(dataset)
        assert int(pipeline.first()[0]) == 0
        assert [int(number) for number, in pipeline.iterate()] == [0, 1, 2]
    assert sorted(added) == ["prefetch", "take", "with_options", "with_options"]


def test_each_pass_is_shuffled_anew_as_by_tensorflow() -> None:
    tf.random.set_seed(1)
    own = shuffled()
    expected = orders([own for _ in range(3)])
    tf.random.set_seed(1)
    dataset = shuffled()
    assert orders([data_backend.Pipeline(dataset).iterate() for _ in range(3)]) == expected
    assert expected[0] != expected[1] != expected[2]
