"""Samplers and shards: exact indices, sizes, and arguments that contradict each other."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.common.seed import set_seed
from mixtrain.dataset import (
    DistributedSampler,
    NumpySlicesDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)


class Backwards(Sampler):
    def __iter__(self):
        yield from range(self.dataset_size - 1, -1, -1)


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (SequentialSampler(), [0, 1, 2, 3, 4, 5, 6]),
        (SequentialSampler(2, 3), [2, 3, 4]),
        (SubsetSampler([3, 1]), [3, 1]),
        (SubsetSampler([3, 1, 5], 2), [3, 1]),
        (DistributedSampler(2, 0, shuffle=False), [0, 2, 4, 6]),
        (DistributedSampler(2, 1, shuffle=False), [1, 3, 5, 0]),
        (DistributedSampler(3, 2, shuffle=False, num_samples=2), [2, 5]),
        (WeightedRandomSampler([0, 0, 1], 4), [2, 2, 2, 2]),
        (Backwards(), [6, 5, 4, 3, 2, 1, 0]),
        (Backwards(3), [6, 5, 4]),
        ([3, 1], [3, 1]),
        (np.array([0, 6]), [0, 6]),
        (4, [4]),
        (range(3), [0, 1, 2]),
    ],
)
def test_indices_and_size(sampler, expected, seven, epochs):
    dataset = seven(sampler=sampler, shuffle=None)
    assert epochs(dataset, 2) == [expected] * 2
    assert dataset.get_dataset_size() == len(expected)


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [(RandomSampler(), range(7)), (SubsetRandomSampler([5, 1, 3, 2]), [1, 2, 3, 5])],
)
def test_random_samplers_give_every_row_once_in_another_order_each_epoch(sampler, expected, seven, epochs):
    set_seed(2)
    first, second = epochs(seven(sampler=sampler, shuffle=None), 2)
    assert sorted(first) == sorted(second) == list(expected)
    assert first != second


def test_sampling_with_replacement_draws_each_row_from_all(values):
    set_seed(0)
    dataset = NumpySlicesDataset(np.arange(10), "x", sampler=RandomSampler(True, 200))
    drawn = values(dataset)
    assert len(drawn) == len(dataset) == 200
    assert set(drawn) == set(range(10))


def test_num_samples_with_shuffle_draws_with_replacement_as_the_reference_does(values):
    set_seed(0)
    drawn = values(NumpySlicesDataset(np.arange(3), "x", num_samples=50))
    assert len(drawn) == 50


@pytest.mark.parametrize("seed", [None, 4])
def test_shuffled_shards_divide_every_epoch_among_them(seed, epochs):
    if seed is not None:
        set_seed(seed)
    shards = [epochs(NumpySlicesDataset(np.arange(9), "x", num_shards=3, shard_id=i), 2) for i in range(3)]
    for epoch in range(2):
        assert sorted(shards[0][epoch] + shards[1][epoch] + shards[2][epoch]) == list(range(9))
    assert shards[0][0] != shards[0][1]


def test_shards_in_order_are_filled_from_the_beginning(seven, values):
    assert [values(seven(num_shards=3, shard_id=i)) for i in range(3)] == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_shards": 2}, ValueError, r"num_shards and shard_id go together; got \(2, None\)"),
        ({"num_shards": 2, "shard_id": 2}, ValueError, "shard_id must be less than num_shards=2"),
        ({"sampler": [0], "shuffle": True}, ValueError, "a sampler decides order and shard by itself"),
        ({"sampler": [0], "num_shards": 2, "shard_id": 0}, ValueError, "a sampler decides order and shard by itself"),
        ({"sampler": SequentialSampler(), "num_samples": 2}, ValueError, "takes no shuffle or num_samples beside it"),
        ({"sampler": "01"}, TypeError, "sampler must be a sampler or an iterable of indices"),
        ({"sampler": 1.5}, TypeError, "sampler must be a sampler or an iterable of indices"),
    ],
)
def test_arguments_that_contradict_each_other_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        NumpySlicesDataset([1, 2, 3], "x", **arguments)


@pytest.mark.parametrize("index", [7, -1])
def test_an_index_outside_the_source_is_named(index, seven, values):
    with pytest.raises(ValueError, match=f"expected indices from 0 to 6, the rows of the source; got {index}"):
        values(seven(sampler=[index], shuffle=None))


def test_a_sampler_without_iter_is_named(seven, values):
    with pytest.raises(NotImplementedError, match="Sampler: expected __iter__"):
        values(seven(sampler=Sampler(), shuffle=None))


@pytest.mark.parametrize("weights", [[0, 0], [-1, 2], [np.nan]])
def test_weights_that_mean_nothing_are_named(weights):
    with pytest.raises(ValueError, match="weights must be finite, not negative and not all 0"):
        WeightedRandomSampler(weights)
