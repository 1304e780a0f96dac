"""The data stream: order, shapes, size, read-ahead, and errors that arrive as themselves."""

from __future__ import annotations

import gc
import math
import threading
import weakref

import numpy as np
import pytest

from mixtrain import backend, data_backend


def rows_of(count, width=2):
    return [(np.full(width, i, np.float32), np.array(i, np.int64)) for i in range(count)]


def pipeline_of(rows, **options):
    return data_backend.pipeline_from_rows(lambda: iter(rows), rows[0], columns=["x", "label"], **options)


def labels(pipeline):
    return [np.asarray(row[-1]).tolist() for row in pipeline.iterate()]


def test_rows_come_in_order_as_tuples_of_tensors_with_their_dtypes():
    elements = list(pipeline_of(rows_of(3)).iterate())
    whole = backend.to_tensor(np.array(1, np.int64)).dtype.name  # JAX's default has 32 bits.
    assert [tuple(value.dtype.name for value in element) for element in elements] == [("float32", whole)] * 3
    assert [np.asarray(element[0]).tolist() for element in elements] == [[0, 0], [1, 1], [2, 2]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (lambda p: p.batch(2), [[0, 1], [2, 3], [4]]),
        (lambda p: p.batch(2, drop_remainder=True), [[0, 1], [2, 3]]),
        (lambda p: p.take(2), [0, 1]),
        (lambda p: p.skip(3), [3, 4]),
        (lambda p: p.repeat(2).skip(3), [3, 4, 0, 1, 2, 3, 4]),
        (lambda p: p.take(1).concatenate(p.skip(4)), [0, 4]),
        (lambda p: p.prefetch(), [0, 1, 2, 3, 4]),
        (lambda p: p.map(lambda x, label: (x, label * 10)), [0, 10, 20, 30, 40]),
    ],
)
def test_each_step_gives_its_elements(step, expected):
    assert labels(step(pipeline_of(rows_of(5), size=5))) == expected


def test_a_row_may_have_a_dimension_of_0():
    """An image without boxes: TensorFlow's `unbatch` ended the process."""
    rows = [(np.ones((count, 4), np.float32), np.array(count, np.int64)) for count in (2, 0, 0, 3, 1)]
    pipeline = pipeline_of(rows, size=5)
    for read in (pipeline, pipeline.prefetch(), pipeline.map(lambda boxes, label: (boxes * 2, label))):
        assert [tuple(row[0].shape) for row in read.iterate()] == [(2, 4), (0, 4), (0, 4), (3, 4), (1, 4)]


def test_shuffle_with_a_seed_is_a_permutation_and_changes_from_pass_to_pass():
    pipeline = pipeline_of(rows_of(20)).shuffle(20, seed=1)
    first, second = labels(pipeline), labels(pipeline)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second


def test_size_is_known_unknown_or_without_end():
    rows = rows_of(5)
    assert pipeline_of(rows, size=5).size == 5
    assert pipeline_of(rows, size=5).batch(2).size == 3
    assert pipeline_of(rows).size is None
    assert not pipeline_of(rows).infinite
    assert pipeline_of(rows, size=math.inf).infinite
    assert pipeline_of(rows, size=math.inf).size is None
    assert pipeline_of(rows, size=5).repeat().infinite


def test_many_rows_cross_in_blocks_and_come_out_in_order():
    pipeline = pipeline_of(rows_of(300), size=300)
    assert labels(pipeline.repeat(1)) == list(range(300))


def test_rows_of_different_sizes_keep_their_shapes():
    rows = [(np.arange(n, dtype=np.float32),) for n in (1, 3, 3, 2)]
    pipeline = data_backend.pipeline_from_rows(lambda: iter(rows), rows[0])
    assert [row[0].shape[0] for row in pipeline.iterate()] == [1, 3, 3, 2]
    assert [row[0].shape[0] for row in pipeline.repeat(1).iterate()] == [1, 3, 3, 2]


def test_batches_may_end_with_a_smaller_one():
    batches = [(np.zeros((4, 3), np.float32),), (np.zeros((2, 3), np.float32),)]
    pipeline = data_backend.pipeline_from_rows(lambda: iter(batches), batches[0], size=2)
    assert [tuple(row[0].shape) for row in pipeline.iterate()] == [(4, 3), (2, 3)]


def test_arrays_are_sliced_along_the_first_axis():
    pipeline = data_backend.pipeline_from_arrays([np.arange(6).reshape(3, 2), np.array([7, 8, 9])], ["x", "y"])
    assert labels(pipeline.batch(2)) == [[7, 8], [9]]
    assert pipeline.columns == ("x", "y")


class SourceBroke(Exception):
    pass


def breaking_rows():
    yield from rows_of(3)
    raise SourceBroke("at row 3")


@pytest.mark.parametrize("step", [lambda p: p, lambda p: p.batch(1), lambda p: p.prefetch(2)])
def test_an_exception_in_the_source_arrives_as_itself_after_the_rows_before_it(step):
    pipeline = step(data_backend.pipeline_from_rows(breaking_rows, rows_of(1)[0]))
    got = []
    with pytest.raises(SourceBroke, match="^at row 3$") as caught:
        for row in pipeline.iterate():
            got.append(np.asarray(row[1]).item())
    assert got == [0, 1, 2]
    assert caught.value.__cause__ is None


def test_an_exception_in_a_python_map_arrives_as_itself():
    def broken(x, label):
        raise SourceBroke("in map")

    pipeline = pipeline_of(rows_of(2)).map_python(broken, rows_of(1)[0])
    with pytest.raises(SourceBroke, match="in map"):
        list(pipeline.iterate())


def test_a_python_map_takes_and_gives_arrays():
    pipeline = pipeline_of(rows_of(3)).map_python(
        lambda x, label: (label * 2,), (np.array(0, np.int64),), columns=("double",)
    )
    assert labels(pipeline) == [0, 2, 4]
    assert pipeline.columns == ("double",)


@pytest.mark.parametrize(
    ("second", "error", "message"),
    [
        ((np.zeros(2, np.float64), np.array(1)), TypeError, 'float32 in column "x".*got float64'),
        ((np.zeros((2, 2), np.float32), np.array(1)), ValueError, r'1 dimensions in column "x".*got shape \(2, 2\)'),
        ((np.zeros(2, np.float32),), ValueError, "2 columns in every row.*got a row of 1"),
    ],
)
def test_a_row_unlike_the_first_is_named(second, error, message):
    pipeline = pipeline_of([*rows_of(1), second])
    with pytest.raises(error, match=message):
        list(pipeline.iterate())
    with pytest.raises(error, match=message):
        list(pipeline.batch(2).iterate())


@pytest.mark.parametrize("promised", [2, 4])
def test_a_wrong_size_is_named(promised):
    with pytest.raises(ValueError, match=f"expected {promised} rows in an epoch.*got 3"):
        list(pipeline_of(rows_of(3), size=promised).iterate())


def test_first_reads_nothing_from_the_source():
    opened = []
    rows = rows_of(2)
    pipeline = data_backend.pipeline_from_rows(lambda: opened.append(1) or iter(rows), rows[0])
    assert int(pipeline.first()[1]) == 0
    assert opened == []


def test_each_pass_calls_the_factory_again():
    passes = iter([[(np.array(1),)], [(np.array(2),)]])
    pipeline = data_backend.pipeline_from_rows(lambda: iter(next(passes)), (np.array(0),))
    assert [labels(pipeline), labels(pipeline)] == [[1], [2]]


def test_a_reader_that_leaves_early_lets_the_thread_and_the_source_end():
    closed = threading.Event()

    def endless():
        try:
            while True:
                yield rows_of(1)[0]
        finally:
            closed.set()

    iterator = data_backend.pipeline_from_rows(endless, rows_of(1)[0]).iterate()
    next(iterator)
    iterator.close()
    assert closed.wait(10)


def test_strings_pass_beside_numbers():
    row = (np.array("label"), np.array(1.5, np.float32))
    text, value = next(data_backend.pipeline_from_rows(lambda: iter([row]), row).iterate())
    assert (np.asarray(text).item(), float(value)) in [("label", 1.5), (b"label", 1.5)]


def test_an_iterator_for_compiled_loops_gives_elements_one_by_one_too():
    iterator = pipeline_of(rows_of(3)).repeat(2).graph_iterator()
    assert [int(next(iterator)[1]) for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    with pytest.raises(data_backend.EndOfStream):
        next(iterator)


def test_an_iterator_for_compiled_loops_arranges_the_parts_of_columns_as_asked():
    rows = [(np.zeros((2, 3), np.float32), np.ones((2, 1), np.float32), np.array(4.0, np.float32))]
    inputs, label = next(pipeline_of(rows, size=1).graph_iterator([(2, 3), (2, 1), ()], like=({"b": 0, "a": 0}, (0,))))
    assert {name: tuple(value.shape) for name, value in inputs.items()} == {"a": (2, 3), "b": (2, 1)}
    assert [float(value) for value in label] == [4.0]


def test_what_ended_an_iterator_for_compiled_loops_can_be_asked_for_once():
    pipeline = data_backend.pipeline_from_rows(breaking_rows, rows_of(1)[0])
    iterator = pipeline.graph_iterator()
    with pytest.raises(Exception):  # noqa: B017  TensorFlow wraps it.
        for _ in range(4):
            next(iterator)
    with pytest.raises(SourceBroke):
        pipeline.raise_pending()
    pipeline.raise_pending()


def test_what_ended_an_iterator_keeps_nothing_alive_once_it_was_handled():
    pipeline = data_backend.pipeline_from_rows(breaking_rows, rows_of(1)[0])
    iterator = pipeline.graph_iterator()
    gone = weakref.ref(iterator)
    gc.collect()
    gc.disable()  # What is still there then hangs in a circle.
    try:
        try:
            for _ in range(4):
                next(iterator)
        except Exception:
            try:
                pipeline.raise_pending()
            except SourceBroke:
                del iterator
        assert gone() is None
    finally:
        gc.enable()
