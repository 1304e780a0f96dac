"""NumpySlicesDataset: its columns by kind of data, its rows, and data that does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.dataset import NumpySlicesDataset


@pytest.mark.parametrize(
    ("data", "names", "shapes"),
    [
        (np.zeros((3, 2)), ["column_0"], [[2]]),
        ([[1, 2], [3, 4]], ["column_0"], [[2]]),
        (([1, 2], np.zeros((2, 4))), ["column_0", "column_1"], [[], [4]]),
        ({"a": [1, 2], "b": np.zeros((2, 1))}, ["a", "b"], [[], [1]]),
        ([[1], [1, 2]], ["column_0"], None),
    ],
)
def test_columns_come_from_the_data(data, names, shapes):
    dataset = NumpySlicesDataset(data, shuffle=False)
    assert dataset.get_col_names() == names
    assert shapes is None or dataset.output_shapes() == shapes


def test_rows_and_dtypes_are_those_of_the_arrays(values):
    dataset = NumpySlicesDataset((np.arange(3, dtype=np.float32), [1, 2, 3]), ["x", "y"], shuffle=False)
    assert (values(dataset, 0), values(dataset, 1)) == ([0, 1, 2], [1, 2, 3])
    assert dataset.output_types() == [np.dtype("float32"), np.dtype("int64")]


def test_rows_of_different_lengths_stay_apart(values):
    assert values(NumpySlicesDataset([[1], [1, 2]], "x", shuffle=False)) == [[1], [1, 2]]


def test_batches_are_the_rows_in_the_same_order_as_one_by_one(epochs):
    dataset = NumpySlicesDataset(np.arange(10), "x", sampler=[3, 1, 9, 0, 4])
    assert epochs(dataset.batch(2), 2) == [[[3, 1], [9, 0], [4]]] * 2
    assert epochs(dataset.map(lambda x: x).batch(2), 1) == [[[3, 1], [9, 0], [4]]]


def test_batches_do_not_share_memory_with_the_data():
    data = np.zeros(4)
    for (batch,) in NumpySlicesDataset(data, shuffle=False).batch(2).create_tuple_iterator(
        num_epochs=1, output_numpy=True
    ):
        batch += 1
    assert data.tolist() == [0, 0, 0, 0]


def test_a_column_with_values_is_read_as_pandas_has_it(values):
    class Series:
        values = np.array([5, 6])

    assert values(NumpySlicesDataset({"x": Series()}, shuffle=False)) == [5, 6]


@pytest.mark.parametrize(
    ("data", "names", "error", "message"),
    [
        (([1, 2], [3]), None, ValueError, "all columns must have the same number of rows"),
        ([], None, ValueError, "same number of rows, at least 1"),
        (([1], [2]), ["a"], ValueError, "column_names must have 2 names"),
        (5, None, TypeError, 'column "column_0" must be an array or a list'),
        ("text", None, TypeError, "must be an array or a list"),
        ([object()], None, TypeError, "must have numbers or strings"),
    ],
)
def test_data_that_does_not_fit_is_named(data, names, error, message):
    with pytest.raises(error, match=message):
        NumpySlicesDataset(data, names)
