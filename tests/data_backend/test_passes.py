"""A pass over a stream: one by one and several at once give the same elements in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from mixtrain import data_backend
from mixtrain.data_backend.tensorflow.passes import Stacked, element_reader

pytestmark = pytest.mark.tensorflow


def _pass(dataset: Any) -> Any:
    return data_backend.wrap_pipeline(dataset).iterate()


def _closed(count: int = 7) -> tf.data.Dataset:
    return tf.data.Dataset.range(count * 2, output_type=tf.float32).batch(2, drop_remainder=True).map(lambda x: (x, -x))


def test_elements_come_in_order_however_they_are_read() -> None:
    elements = _pass(_closed())
    first = next(elements)
    group = elements.take_stacked(3, 3)
    rest = [*group, *elements.take_stacked(2, 2), *elements]
    assert isinstance(group, Stacked) and len(group) == 3
    assert [row[0].numpy().tolist() for row in (first, *rest)] == [[2.0 * i, 2.0 * i + 1] for i in range(7)]
    assert all(np.array_equal(x, -y) for x, y in (first, *rest))
    assert elements.take_stacked(2, 2) is None and next(elements, None) is None


def test_a_group_at_the_end_is_shorter() -> None:
    elements = _pass(_closed(3))
    assert len(elements.take_stacked(8, 8)) == 3 and elements.take_stacked(8, 8) is None


def test_elements_are_left_to_who_reads_the_iterator_but_never_the_last() -> None:
    elements = _pass(_closed(5))
    assert elements.reserve(3) == 3
    assert [next(elements.iterator)[0].numpy().tolist()[0] for _ in range(3)] == [0.0, 2.0, 4.0]
    assert elements.reserve(3) == 0, "two are left, of which one is the last"
    assert [row[0].numpy().tolist()[0] for row in elements] == [6.0, 8.0]


def test_a_group_is_a_sequence_of_elements() -> None:
    group = _pass(_closed(3)).take_stacked(3, 3)
    assert group[-1][0].numpy().tolist() == [4.0, 5.0]
    assert [row[0].numpy().tolist() for row in group[:2]] == [[0.0, 1.0], [2.0, 3.0]]
    with pytest.raises(IndexError):
        group[3]


def test_structured_columns_keep_their_structure() -> None:
    dataset = _closed(3).map(lambda x, y: ({"a": x, "b": (y, y)}, x))
    inputs, label = _pass(dataset).take_stacked(2, 2)[1]
    assert inputs["b"][1].numpy().tolist() == [-2.0, -3.0] and label.numpy().tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    "element",
    [
        lambda x: x,
        lambda x: (x, -x),
        lambda x: (x, (-x, {"b": x, "a": 2 * x})),
        lambda x: {"z": x, "a": -x},
        lambda x: (x, tf.RaggedTensor.from_tensor(x[None])),
        lambda x: (x, tf.sparse.from_dense(x)),
        lambda x: (x, tf.data.Dataset.range(2).batch(2)),
    ],
)
def test_an_element_is_read_as_the_iterator_itself_reads_it(element: Any) -> None:
    dataset = tf.data.Dataset.range(5, output_type=tf.float32).batch(2).map(element)
    read, iterator = element_reader(iter(dataset)), iter(dataset)
    for _ in range(3):
        one, other = read(), next(iterator)
        tf.nest.assert_same_structure(one, other, expand_composites=True)
        pairs = zip(*(tf.nest.flatten(value, expand_composites=True) for value in (one, other)), strict=True)
        assert all(a.dtype == b.dtype and (a.dtype == tf.variant or np.array_equal(a, b)) for a, b in pairs)
    with pytest.raises(StopIteration):
        read()
    with pytest.raises(StopIteration):
        read()


def test_elements_that_may_differ_in_shape_are_read_one_by_one() -> None:
    elements = _pass(tf.data.Dataset.range(5).batch(2))
    assert elements.take_stacked(2, 2) is None
    assert [row[0].shape[0] for row in elements] == [2, 2, 1]


def test_what_python_code_below_raised_comes_out_as_itself() -> None:
    def fail(x: Any) -> Any:
        raise KeyError("the row is bad")

    example = (np.zeros(2, np.float32),)
    pipeline = data_backend.pipeline_from_arrays([np.zeros((4, 2), np.float32)]).map_python(fail, example)
    with pytest.raises(KeyError, match="the row is bad"):
        next(pipeline.iterate())
