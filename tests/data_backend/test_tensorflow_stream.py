"""The data stream of TensorFlow's backend: its own datasets, and graphs that read an iterator."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from mixtrain import data_backend
from tests.data_backend.test_stream import SourceBroke, breaking_rows, pipeline_of, rows_of

pytestmark = pytest.mark.tensorflow
tf = pytest.importorskip("tensorflow")


def test_wrapping_names_columns_by_keys_and_makes_a_tuple_of_a_single_tensor():
    named = data_backend.wrap_pipeline(tf.data.Dataset.from_tensor_slices({"b": [1, 2], "a": [3, 4]}))
    assert named.columns == ("b", "a")
    assert [tuple(int(v) for v in row) for row in named.iterate()] == [(1, 3), (2, 4)]
    single = data_backend.wrap_pipeline(tf.data.Dataset.range(2))
    assert [tuple(int(v) for v in row) for row in single.iterate()] == [(0,), (1,)]
    pair = data_backend.wrap_pipeline(tf.data.Dataset.from_tensor_slices(([1, 2], [3, 4])))
    assert (pair.columns, pair.size) == (None, 2)


def test_only_the_backend_own_datasets_are_sources():
    assert data_backend.is_pipeline_source(tf.data.Dataset.range(2))
    assert not data_backend.is_pipeline_source([1, 2])


def test_graph_iterator_feeds_a_compiled_loop_with_fixed_shapes_and_one_trace():
    pipeline = pipeline_of(rows_of(8), size=8).batch(2).repeat()
    iterator = pipeline.graph_iterator([(2, 2), (2,)])
    seen = []

    @tf.function(autograph=False)
    def step(iterator):
        x, label = next(iterator)
        seen.append((x.shape.as_list(), label.shape.as_list()))
        return tf.reduce_sum(label)

    assert [int(step(iterator)) for _ in range(5)] == [1, 5, 9, 13, 1]
    assert int(step(pipeline.graph_iterator([(2, 2), (2,)]))) == 1
    assert seen == [([None, 2], [None])]


def test_graph_iterator_arranges_the_parts_of_columns_as_asked():
    rows = [(np.zeros((2, 3), np.float32), np.ones((2, 1), np.float32), np.array(4.0, np.float32))]
    pipeline = dataclasses.replace(pipeline_of(rows, size=1), uniform=True)
    element = next(pipeline.graph_iterator([(2, 3), (2, 1), ()], like=({"b": 0, "a": 0}, (0,))))
    assert {name: value.shape.as_list() for name, value in element[0].items()} == {"a": [2, 3], "b": [2, 1]}
    assert [float(value) for value in element[1]] == [4.0]
    uneven = pipeline_of(rows, size=1).graph_iterator([(2, 3), (2, 1), ()])
    assert [spec.shape.as_list() for spec in uneven.element_spec] == [[None, 3], [None, 1], []]


def test_graph_iterator_ends_with_end_of_stream():
    iterator = pipeline_of(rows_of(1)).graph_iterator()
    step = tf.function(lambda iterator: next(iterator)[1], autograph=False)
    step(iterator)
    with pytest.raises(data_backend.EndOfStream):
        step(iterator)
    with pytest.raises(data_backend.EndOfStream):
        next(iterator)


def test_an_exception_inside_a_compiled_call_can_be_asked_for():
    pipeline = data_backend.pipeline_from_rows(breaking_rows, rows_of(1)[0])
    iterator = pipeline.graph_iterator()
    step = tf.function(lambda iterator: next(iterator)[1], autograph=False)
    with pytest.raises(tf.errors.OpError):
        for _ in range(4):
            step(iterator)
    with pytest.raises(SourceBroke):
        pipeline.raise_pending()
    pipeline.raise_pending()


_LEFT_AT_EXIT = """
import atexit

ended = []
atexit.register(lambda: print("ended:", ended))  # Functions at exit run in reverse: this one last.

import numpy as np
import tensorflow as tf
from mixtrain import data_backend

def rows():
    try:
        while True:
            yield (np.ones(2, np.float32),)
    finally:
        ended.append("rows")

iterator = data_backend.pipeline_from_rows(rows, (np.ones(2, np.float32),)).repeat().graph_iterator()
other = data_backend.pipeline_from_rows(rows, (np.ones(2, np.float32),)).repeat().graph_iterator()
next(iterator), next(other)
resource = tf.nest.flatten(iterator, expand_composites=True)  # What a kept traceback may hold.
del iterator, other
print("deleted:", ended)
"""


@pytest.mark.slow
def test_a_source_in_python_that_is_read_until_exit_ends_while_python_can_run_it():
    done = subprocess.run(
        [sys.executable, "-c", _LEFT_AT_EXIT], capture_output=True, text=True, timeout=200, check=False
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, ["deleted: ['rows']", "ended: ['rows', 'rows']"])


def test_rows_cross_into_the_backend_dataset_in_blocks_and_keep_their_shapes():
    assert [int(row[1]) for row in pipeline_of(rows_of(300), size=300).dataset] == list(range(300))
    rows = [(np.arange(n, dtype=np.float32),) for n in (1, 3, 3, 2)]
    dataset = data_backend.pipeline_from_rows(lambda: iter(rows), rows[0]).dataset
    assert [row[0].shape[0] for row in dataset] == [1, 3, 3, 2]


def test_the_first_element_of_a_dataset_is_read():
    assert int(data_backend.wrap_pipeline(tf.data.Dataset.range(5, 9)).first()[0]) == 5


def test_strings_and_float64_are_kept():
    row = (np.array("label"), np.array(1.5))
    pipeline = data_backend.pipeline_from_rows(lambda: iter([row]), row)
    text, value = next(pipeline.iterate())
    assert (text.numpy(), value.dtype.name) == (b"label", "float64")


@pytest.mark.parametrize(("shape", "reads"), [((2,), 1), ((None,), 2)], ids=["one shape for all", "open shapes"])
def test_the_first_element_is_read_once_where_all_others_have_its_shapes(shape, reads):
    seen = []

    def count(x):
        seen.append(float(x[0]))
        return x

    rows = tf.data.Dataset.from_tensor_slices(np.ones((3, 2), np.float32))
    pipeline = data_backend.wrap_pipeline(
        rows.map(lambda x: (tf.ensure_shape(tf.numpy_function(count, [x], tf.float32), shape),))
    )
    assert [pipeline.first()[0].numpy().tolist() for _ in range(2)] == [[1.0, 1.0]] * 2
    assert len(seen) == reads


def test_an_example_is_made_of_known_shapes_and_read_where_they_are_not_known():
    seen = []

    def count(x):
        seen.append(float(x[0]))
        return x

    def stream(shape):
        rows = tf.data.Dataset.from_tensor_slices(np.ones((3, 2), np.float32))
        return rows.map(lambda x: tf.ensure_shape(tf.numpy_function(count, [x], tf.float32), shape)).batch(2)

    known, read = (data_backend.wrap_pipeline(stream(shape)).example()[0].numpy().tolist() for shape in ((2,), (None,)))
    assert (known, read) == ([[0.0, 0.0]], [[1.0, 1.0]] * 2)
    assert len(seen) >= 2  # Of the second.
    assert data_backend.wrap_pipeline(tf.data.Dataset.from_tensors("a")).example()[0].numpy() == b""


def test_a_loop_keeps_shapes_that_are_known_better_than_a_first_batch_tells():
    closed = tf.data.Dataset.range(8, output_type=tf.float32).batch(2, drop_remainder=True).map(lambda x: (x, -x))
    iterator = data_backend.wrap_pipeline(closed).graph_iterator([(2,), (2,)])
    assert [spec.shape.as_list() for spec in iterator.element_spec] == [[2], [2]]
