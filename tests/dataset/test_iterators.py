"""Iterators: epochs, tensors and arrays, and the facts that a dataset tells."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain import backend
from mixtrain.dataset import GeneratorDataset, NumpySlicesDataset


def test_dict_rows_have_the_columns_as_keys(seven):
    rows = list(seven().batch(4).create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [list(row) for row in rows] == [["x", "label"]] * 2
    assert rows[1]["label"].tolist() == [4, 5, 6]


def test_rows_are_tensors_by_default_and_strings_stay_arrays():
    dataset = GeneratorDataset([(1.5, "text")], ["x", "word"])
    row = next(dataset.create_dict_iterator())
    assert backend.is_tensor(row["x"])
    assert (row["x"].dtype, float(row["x"])) == (backend.to_tensor(np.float64(1.5)).dtype, 1.5)
    assert isinstance(row["word"], np.ndarray)
    assert isinstance(next(dataset.create_tuple_iterator()), list)


def test_tuple_columns_are_chosen_and_ordered(seven):
    row = next(seven().create_tuple_iterator(columns=["label", "x"], output_numpy=True))
    assert [value.dtype.name for value in row] == ["int64", "float64"]
    with pytest.raises(ValueError, match="columns must be one of x, label; got 'z'"):
        seven().create_tuple_iterator(columns=["z"])


def test_each_loop_over_an_iterator_is_one_epoch(seven):
    iterator = seven().create_tuple_iterator(num_epochs=2)
    assert [len(list(iterator)), len(list(iterator))] == [7, 7]
    with pytest.raises(RuntimeError, match="expected at most 2 epochs, its num_epochs; got another"):
        list(iterator)


def test_an_iterator_has_no_last_epoch_by_default(seven):
    iterator = seven().create_dict_iterator()
    assert [len(list(iterator)) for _ in range(5)] == [7] * 5


def test_a_loop_goes_on_where_the_last_one_stopped(seven):
    iterator = seven().create_tuple_iterator(num_epochs=1, output_numpy=True)
    next(iterator)
    assert [row[1].tolist() for row in iterator] == [1, 2, 3, 4, 5, 6]


def test_a_dataset_itself_iterates_over_one_epoch(seven):
    assert [int(label) for _, label in seven()] == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("num_epochs", "error"), [(0, ValueError), (-2, ValueError), (1.5, TypeError)])
def test_wrong_num_epochs_is_named(num_epochs, error, seven):
    with pytest.raises(error, match="num_epochs must be"):
        seven().create_tuple_iterator(num_epochs=num_epochs)


@pytest.mark.parametrize(
    ("step", "size", "batch_size", "repeat_count"),
    [
        (lambda d: d, 7, 1, 1),
        (lambda d: d.batch(3), 3, 3, 1),
        (lambda d: d.batch(3, True), 2, 3, 1),
        (lambda d: d.batch(3).repeat(2), 6, 3, 2),
        (lambda d: d.repeat(2).batch(5), 3, 5, 2),
        (lambda d: d.repeat(2).repeat(3), 42, 1, 6),
        (lambda d: d.repeat(), 7, 1, -1),
        (lambda d: d.batch(3).map(lambda x: x), 3, 3, 1),
        (lambda d: d.batch(3).take(2), 2, 3, 1),
    ],
)
def test_sizes(step, size, batch_size, repeat_count, seven):
    dataset = step(seven())
    assert (dataset.get_dataset_size(), dataset.get_batch_size(), dataset.get_repeat_count()) == (
        size, batch_size, repeat_count,
    )
    assert len(dataset) == size


def test_the_size_of_a_generator_is_counted_once():
    passes = []

    def rows():
        passes.append(1)
        yield from range(5)

    dataset = GeneratorDataset(rows, "x")
    assert bool(dataset)
    assert passes == []
    assert [dataset.get_dataset_size(), len(dataset)] == [5, 5]
    assert passes == [1]


def test_shapes_and_types_are_those_of_the_first_row():
    dataset = GeneratorDataset([(np.ones((2, 3)), "text"), (np.ones((4, 3)), "t")], ["x", "word"], shuffle=False)
    assert dataset.output_shapes() == [[2, 3], []]
    assert dataset.output_shapes(estimate=True) == [[None, 3], []]
    assert dataset.output_types() == [np.dtype("float64"), np.dtype("U")]
    assert dataset.columns == ("x", "word")
    with pytest.raises(ValueError, match="expected at least one row, to learn shapes and dtypes from"):
        dataset.skip(5).output_shapes()


def test_facts_that_data_from_python_does_not_have():
    dataset = NumpySlicesDataset([1], "x")
    assert (dataset.num_classes(), dataset.get_class_indexing(), dataset.reset()) == (None, {}, None)


@pytest.mark.parametrize("name", ["stop", "release"])
def test_a_stopped_iterator_gives_no_more_rows(name, seven):
    iterator = seven().create_tuple_iterator()
    next(iterator)
    getattr(iterator, name)()
    with pytest.raises(RuntimeError, match="expected at most 1 epochs"):
        next(iterator)
