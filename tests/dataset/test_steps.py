"""The smaller steps and questions of a dataset: flat_map, children, refusals, and sources that cannot be read."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.dataset import GeneratorDataset, NumpySlicesDataset, PaddedDataset


def test_flat_map_takes_every_column(values):
    rows = NumpySlicesDataset(([[0, 1], [2, 3]], [[10, 20], [30, 40]]), ["a", "b"], shuffle=False)
    flat = rows.flat_map(lambda a, b: NumpySlicesDataset((a + 1, b - 1), ["a", "b"], shuffle=False))
    assert (values(flat, 0), values(flat, 1)) == ([1, 2, 3, 4], [9, 19, 29, 39])


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [(3, TypeError, "func must be a function"), (lambda x: [x], TypeError, "flat_map: each dataset must be a Dataset")],
)
def test_what_flat_map_cannot_take_is_named(function, error, message):
    with pytest.raises(error, match=message):
        NumpySlicesDataset([1], "x").flat_map(function)


def test_children_are_the_datasets_that_are_read(seven, values):
    source = seven()
    joined = source.take(2) + source.skip(6)
    assert source.children == []
    assert [values(child) for child in joined.children] == [[0, 1], [6]]


def test_input_indexs_holds_what_was_assigned(seven):
    dataset = seven()
    assert dataset.input_indexs == ()
    dataset.input_indexs = (1, 0)
    assert dataset.input_indexs == (1, 0)


def test_projecting_drops_columns_before_rows_are_stacked(values):
    ragged = GeneratorDataset([(np.arange(n), n) for n in (1, 2, 3)], ["x", "n"], shuffle=False)
    assert values(ragged.project("n").batch(3)) == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.to_device(), "Dataset.to_device: .*Write model.train"),
    ],
)
def test_what_is_not_done_here_names_what_to_use_instead(call, message, seven):
    with pytest.raises(NotImplementedError, match=message):
        call(seven())


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([], ValueError, "padded_samples must have a row"),
        ({"x": 1}, TypeError, "padded_samples must be a list"),
        ([3], TypeError, "each of padded_samples must be a dict"),
        ([{"x": 1}, {"y": 1}], ValueError, "each row must have the columns x; got 'y'"),
    ],
)
def test_wrong_rows_of_padding_are_named(rows, error, message):
    with pytest.raises(error, match=f"PaddedDataset: {message}"):
        PaddedDataset(rows)


def test_updates_reach_the_function_of_a_named_place(seven, values):
    seen = []
    dataset = seven().sync_wait("policy", callback=seen.append).sync_wait("other").batch(2)
    rows = dataset.create_tuple_iterator(num_epochs=1)
    next(rows)
    dataset.sync_update("policy", data={"step": 1})
    dataset.sync_update(condition_name="other", num_batch=1)
    assert seen == [{"step": 1}] and dataset.get_dataset_size() == 4
    with pytest.raises(RuntimeError, match="sync_wait: condition_name must be new; got 'policy'"):
        dataset.sync_wait("policy")
    with pytest.raises(ValueError, match="sync_update: condition_name must be one of"):
        dataset.sync_update("nothing")
