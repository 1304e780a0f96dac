"""A step repeated in a graph runs for each index in order, and its results come back stacked."""

from __future__ import annotations

from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")
once = pytest.importorskip("mixtrain.backend.tensorflow.repeat").once
repeated = pytest.importorskip("mixtrain.backend.tensorflow.repeat").repeated

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("count", [1, 4])
def test_each_index_runs_once_and_in_order(count: int) -> None:
    seen = tf.Variable(tf.zeros(4, tf.int32))
    steps = tf.Variable(0)

    def step(index: Any) -> tuple[Any, Any]:
        place = steps.assign_add(1) - 1
        seen.scatter_update(tf.IndexedSlices(index + 1, place))
        return index * 10, tf.fill([2], tf.cast(index, tf.float32))

    tens, pairs = tf.function(lambda count: repeated(step, count), autograph=False)(tf.constant(count))
    assert tens.numpy().tolist() == [10 * i for i in range(count)]
    assert pairs.numpy().tolist() == [[float(i)] * 2 for i in range(count)]
    assert seen.numpy().tolist() == [i + 1 if i < count else 0 for i in range(4)]


def test_a_single_step_runs_once() -> None:
    steps = tf.Variable(0)
    results = tf.function(lambda x: once(lambda: (steps.assign_add(1), 2 * x)), autograph=False)(tf.ones([2]))
    assert [value.numpy().tolist() for value in results] == [1, [2.0, 2.0]] and int(steps) == 1


def test_results_of_one_form_come_back_each_in_its_place() -> None:
    def step(index: Any) -> tuple[Any, ...]:
        number = tf.cast(index, tf.float32)
        return number, index, number * 2, index > 0, tf.fill([2], number), number * 3

    results = tf.function(lambda count: repeated(step, count), autograph=False)(tf.constant(3))
    assert [row.numpy().tolist() for row in results] == [
        [0.0, 1.0, 2.0], [0, 1, 2], [0.0, 2.0, 4.0], [False, True, True], [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]],
        [0.0, 3.0, 6.0],
    ]
