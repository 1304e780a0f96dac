"""Batch: sizes, remainders, functions of batches, and rows that cannot be stacked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixtrain.dataset import BatchInfo, GeneratorDataset, NumpySlicesDataset


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((3,), [[0, 1, 2], [3, 4, 5], [6]]),
        ((3, True), [[0, 1, 2], [3, 4, 5]]),
        ((7, True), [[0, 1, 2, 3, 4, 5, 6]]),
        ((30,), [[0, 1, 2, 3, 4, 5, 6]]),
        ((30, True), []),
        ((np.int64(4),), [[0, 1, 2, 3], [4, 5, 6]]),
        ((lambda info: info.get_batch_num() + 1,), [[0], [1, 2], [3, 4, 5], [6]]),
        ((lambda info: info.get_batch_num() + 2, True), [[0, 1], [2, 3, 4]]),
    ],
)
def test_batches_and_their_number(arguments, expected, seven, epochs):
    dataset = seven().batch(*arguments)
    assert epochs(dataset, 2) == [expected] * 2
    assert len(dataset) == len(expected)


def test_batches_keep_the_dtype_and_stack_on_a_new_first_axis():
    dataset = GeneratorDataset([(np.ones((2, 3), np.float16), 1)] * 4, ["a", "b"]).batch(4)
    assert dataset.output_shapes() == [[4, 2, 3], [4]]
    assert dataset.output_types() == [np.dtype("float16"), np.dtype("int64")]


@pytest.mark.parametrize(
    ("function", "options", "expected"),
    [
        (lambda x, y, info: (x, [v * 10 + info.get_batch_num() for v in y]), {}, [[0, 10, 20], [31, 41, 51], [62]]),
        (lambda y, info: ([v + 1 for v in y],), {"input_columns": "label"}, [[1, 2, 3], [4, 5, 6], [7]]),
        (lambda y, info: [v + 1 for v in y], {"input_columns": ["label"]}, [[1, 2, 3], [4, 5, 6], [7]]),
        (lambda y, info: (np.stack(y) * 2,), {"input_columns": ["label"]}, [[0, 2, 4], [6, 8, 10], [12]]),
    ],
)
def test_per_batch_map_takes_lists_and_gives_lists(function, options, expected, seven, values):
    assert values(seven().batch(3, per_batch_map=function, **options)) == expected


def test_per_batch_map_knows_the_epoch(seven, epochs):
    dataset = seven().batch(
        7, per_batch_map=lambda y, info: [info.get_epoch_num()] * len(y), input_columns="label"
    )
    assert epochs(dataset, 2) == [[[0] * 7], [[1] * 7]]


def test_per_batch_map_may_change_the_columns(seven):
    dataset = seven().batch(
        3, per_batch_map=lambda y, info: (y, y), input_columns="label", output_columns=["p", "q"]
    )
    assert dataset.get_col_names() == ["p", "q", "x"]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((0,), {}, ValueError, "batch: batch_size must be at least 1; got 0. Write batch_size=32"),
        ((-1,), {}, ValueError, "batch_size must be at least 1; got -1"),
        ((2.0,), {}, TypeError, "batch_size must be an int; got float 2.0"),
        ((True,), {}, TypeError, "batch_size must be an int"),
        ((2, 1), {}, TypeError, "drop_remainder must be True or False"),
        ((2,), {"input_columns": "x"}, ValueError, "input_columns and output_columns belong to per_batch_map"),
        ((2,), {"per_batch_map": max, "input_columns": "z"}, ValueError, "must be one of x, label; got 'z'"),
    ],
)
def test_wrong_arguments_are_named_at_once(arguments, options, error, message, seven):
    with pytest.raises(error, match=message):
        seven().batch(*arguments, **options)


def test_a_size_function_that_gives_no_size_is_named(seven, values):
    with pytest.raises(ValueError, match="batch_size must be at least 1; got 0"):
        values(seven().batch(lambda info: 0))


def test_rows_of_different_shapes_are_named_with_the_column_and_both_shapes(values):
    dataset = GeneratorDataset([(1, np.ones(2)), (1, np.ones(3))], ["a", "b"], shuffle=False).batch(2)
    with pytest.raises(ValueError, match=r'one shape in column "b", \(2,\) as in the first row.*got \(3,\)'):
        values(dataset)


def test_rows_of_different_dtypes_are_named_with_the_column_and_both_dtypes(values):
    dataset = GeneratorDataset([1, 2.5], "a", shuffle=False).batch(2)
    with pytest.raises(TypeError, match='one dtype in column "a", int64 as in the first row.*got float64'):
        values(dataset)


def test_strings_of_different_lengths_stack(values):
    assert values(GeneratorDataset(["a", "long"], "x", shuffle=False).batch(2)) == [["a", "long"]]


def test_a_map_that_loses_rows_is_named(seven, values):
    dataset = seven().batch(3, per_batch_map=lambda y, info: y[:1], input_columns="label")
    with pytest.raises(ValueError, match='expected 3 rows from per_batch_map in column "label".*got 1'):
        values(dataset)


def test_batch_info_counts_from_zero():
    info = BatchInfo(0, 1)
    assert (info.get_batch_num(), info.get_epoch_num()) == (0, 1)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda rows, info: (np.array(0),), [0, 0]),
        (lambda rows, info: np.array([[1], [2], [3]]), [[[1], [2], [3]]] * 2),
        (lambda rows, info: [2 * row for row in rows], [[[0], [2]], [[4], [6]]]),
    ],
)
def test_a_function_may_return_the_array_of_a_whole_batch(function: Any, expected: Any) -> None:
    data = GeneratorDataset(lambda: ((np.array([i]),) for i in range(4)), ["x"])
    batches = data.batch(2, input_columns=["x"], per_batch_map=function)
    assert [batch["x"].tolist() for batch in batches.create_dict_iterator(1, True)] == expected


def test_a_function_that_returns_no_rows_is_named() -> None:
    data = NumpySlicesDataset([1, 2], ["x"]).batch(2, input_columns=["x"], per_batch_map=lambda rows, info: 5)
    with pytest.raises(TypeError, match='per_batch_map must return a list or an array for the column "x"; got int 5'):
        list(data.create_dict_iterator(1, True))
    assert NumpySlicesDataset([1, 2]).batch(lambda info: 1 + info.get_batch_num()).get_batch_size() == -1
