"""Padded and bucketed batches: what pad_info means column by column, and what is said of a wrong one."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.dataset import GeneratorDataset


@pytest.fixture
def ragged():
    """Make five rows of length 1 to 5 beside their number."""
    return GeneratorDataset([(np.arange(n + 1), n) for n in range(5)], ["x", "n"], shuffle=False)


def test_older_spelling_pads_in_batch(ragged, values):
    assert values(ragged.batch(2, pad_info={"x": ([None], -1)}), 0) == [
        [[0, -1], [0, 1]], [[0, 1, 2, -1], [0, 1, 2, 3]], [[0, 1, 2, 3, 4]],
    ]


def test_padding_comes_after_per_batch_map(ragged, values):
    batches = ragged.batch(
        3, True, per_batch_map=lambda x, info: ([value[:2] for value in x],), input_columns="x",
        pad_info={"x": ([3], 9)},
    )
    assert values(batches, 0) == [[[0, 9, 9], [0, 1, 9], [0, 1, 9]]]


def test_column_order_chooses_columns_after_batch(ragged):
    assert ragged.batch(1, column_order=["n", "x"]).get_col_names() == ["n", "x"]


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [("uint8", -1, 255), ("float32", 0.5, 0.5), ("int64", 2.7, 2), ("bool", 1, True), ("float32", None, 0.0)],
)
def test_values_are_cast_to_the_columns_dtype(dtype, value, expected):
    rows = GeneratorDataset([(np.ones(1, dtype),)], ["x"])
    ((batch,),) = rows.padded_batch(1, pad_info={"x": ([2], value)}).create_tuple_iterator(
        num_epochs=1, output_numpy=True
    )
    assert (batch.dtype, batch.tolist()) == (np.dtype(dtype), [[1, expected]])


def test_strings_are_padded_with_strings(values):
    rows = GeneratorDataset([(np.array(["a", "bc"]),), (np.array(["d"]),)], ["x"], shuffle=False)
    assert values(rows.padded_batch(2, pad_info={"x": (None, "pad")})) == [[["a", "bc"], ["d", "pad"]]]
    assert values(rows.padded_batch(2, pad_info={})) == [[["a", "bc"], ["d", ""]]]


@pytest.mark.parametrize(
    ("pad_info", "error", "message"),
    [
        ({"y": ([1], 0)}, ValueError, "a column of pad_info must be one of x, n; got 'y'"),
        ({"x": [1]}, TypeError, r"each value of pad_info must be a tuple \(shape, value\)"),
        ({"x": (3, 0)}, TypeError, "a shape in pad_info must be a list or tuple"),
        ({"x": ([0], 0)}, ValueError, "a size in pad_info must be at least 1"),
        ([("x", 0)], TypeError, "pad_info must be a Mapping"),
    ],
)
def test_a_wrong_pad_info_is_named_at_once(pad_info, error, message, ragged):
    with pytest.raises(error, match=message):
        ragged.padded_batch(2, pad_info=pad_info)


def test_a_shape_of_another_rank_is_named_on_reading(ragged, values):
    with pytest.raises(ValueError, match='column "x" must have 2 dimensions in every row'):
        values(ragged.padded_batch(2, pad_info={"x": ([6, 6], 0)}))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"bucket_boundaries": [3, 3]}, ValueError, "bucket_boundaries must increase"),
        ({"bucket_boundaries": []}, ValueError, "bucket_boundaries must increase"),
        ({"bucket_boundaries": 3}, TypeError, "bucket_boundaries must be a list or tuple"),
        ({"bucket_batch_sizes": [1, 1]}, ValueError, "bucket_batch_sizes must have 3 numbers"),
        ({"bucket_batch_sizes": [1, 0, 1]}, ValueError, "each of bucket_batch_sizes must be at least 1"),
        ({"column_names": ["x", "n"]}, ValueError, "without element_length_function there must be one column"),
        ({"drop_remainder": 1}, TypeError, "drop_remainder must be True or False"),
    ],
)
def test_wrong_buckets_are_named_at_once(arguments, error, message, ragged):
    with pytest.raises(error, match=f"bucket_batch_by_length: {message}"):
        ragged.bucket_batch_by_length(
            **{"column_names": ["x"], "bucket_boundaries": [2, 4], "bucket_batch_sizes": [1, 1, 1], **arguments}
        )


def test_a_row_beyond_the_last_boundary_cannot_be_padded_to_it(ragged, values):
    buckets = ragged.bucket_batch_by_length(
        ["x"], [3], [1, 1], pad_info={"x": ([None], 0)}, pad_to_bucket_boundary=True
    )
    with pytest.raises(ValueError, match="pad_to_bucket_boundary needs rows below the last boundary"):
        values(buckets)
