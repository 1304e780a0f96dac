"""Samplers and shards: exact indices, sizes, and arguments that contradict each other."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.dataset import (
    DistributedSampler,
    NumpySlicesDataset,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Shuffle,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.seed import set_seed


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
    dataset = NumpySlicesDataset(np.arange(200), "x", sampler=RandomSampler(True, 150))
    drawn = values(dataset)
    assert len(drawn) == len(dataset) == 150
    assert len(set(drawn)) < 150


def test_num_samples_with_shuffle_draws_with_replacement_as_the_reference_does(values):
    set_seed(0)
    drawn = values(NumpySlicesDataset(np.arange(200), "x", num_samples=150))
    assert len(drawn) == 150
    assert len(set(drawn)) < 150


@pytest.mark.parametrize(
    "sampler", [RandomSampler(True, 50), RandomSampler(num_samples=50), WeightedRandomSampler([1, 1, 1], 50)]
)
def test_no_sampler_draws_more_rows_than_there_are_as_in_the_reference(sampler, values):
    dataset = NumpySlicesDataset(np.arange(3), "x", sampler=sampler)
    assert len(values(dataset)) == len(dataset) == 3


def test_num_samples_of_zero_means_all_as_in_the_reference(values):
    assert values(NumpySlicesDataset([1, 2], "x", num_samples=0, shuffle=False)) == [1, 2]
    assert RandomSampler(num_samples=0).num_samples is None


@pytest.mark.slow
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


def test_a_childs_choice_is_what_the_parent_chooses_from(seven, values):
    sampler = SequentialSampler(1, 3)
    sampler.add_child(DistributedSampler(2, 0, shuffle=False))
    assert values(seven(sampler=sampler, shuffle=None)) == [2, 4, 6]
    assert isinstance(sampler.get_child(), DistributedSampler)
    with pytest.raises(ValueError, match="SequentialSampler.add_child: a sampler can have one child"):
        sampler.add_child(SequentialSampler())


@pytest.mark.parametrize(
    ("own", "childs", "expected"), [(3, 2, 2), (None, 2, 2), (3, None, 3), (None, None, None), (2, 3, 2)]
)
def test_get_num_samples_is_the_least_number_given(own, childs, expected):
    sampler = SequentialSampler(num_samples=own)
    sampler.add_child(RandomSampler(num_samples=childs))
    assert sampler.get_num_samples() == expected


def test_get_num_samples_knows_the_length_of_indices_and_of_a_users_sampler():
    class Three(Sampler):
        def __iter__(self):
            return iter([0, 2, 4])

        def __len__(self):
            return 3

    assert SubsetSampler([4, 2]).get_num_samples() == 2
    assert Three().get_num_samples() == 3


def test_a_size_with_a_child_is_counted_without_reading(seven):
    sampler = SequentialSampler(1)
    sampler.add_child(SubsetSampler([5, 4, 3]))
    assert seven(sampler=sampler, shuffle=None).get_dataset_size() == 2


def test_rows_of_a_class_come_from_that_class(epochs):
    set_seed(0)
    images = np.arange(40).reshape(10, 2, 2)
    labels = np.array([3, 1] * 5)
    pass_seed = PassSeed.start()
    chosen = PKSampler(20).indices(pass_seed, 10, labels)
    assert labels[chosen].tolist() == [1] * 20 + [3] * 20
    assert len(set(chosen.tolist())) > 4
    assert PKSampler(2).count(10, labels) == 4
    sampler = PKSampler(1, shuffle=True)
    mixed = {tuple(labels[sampler.indices(pass_seed.at_epoch(i), 10, labels)].tolist()) for i in range(20)}
    assert mixed == {(1, 3), (3, 1)}
    with pytest.raises(ValueError, match="PKSampler: expected a source with labels"):
        epochs(NumpySlicesDataset((images, labels), sampler=PKSampler(1)), 1)


def test_use_sampler_replaces_and_add_sampler_chooses_from_what_was_chosen(seven, values):
    dataset = seven(sampler=SequentialSampler(2), shuffle=None)
    dataset.add_sampler(DistributedSampler(2, 0, shuffle=False))
    assert (values(dataset), len(dataset)) == ([2, 4, 6], 3)
    dataset.use_sampler(SequentialSampler(5))
    assert (values(dataset), len(dataset)) == ([5, 6], 2)


def test_a_sampler_reaches_the_source_through_steps_that_work_row_by_row(seven, values):
    dataset = seven().map(lambda x: x * 10, "label").project(["label"])
    dataset.use_sampler(SubsetSampler([6, 0]))
    assert values(dataset) == [60, 0]


def test_a_sampler_above_a_step_that_mixes_rows_is_refused(seven):
    with pytest.raises(ValueError, match="sampler: expected a source that is read by index; got Batch"):
        seven().batch(2).use_sampler(SequentialSampler())


def test_joined_datasets_take_only_a_plain_distributed_sampler(seven):
    joined = seven() + seven()
    with pytest.raises(ValueError, match="must be a DistributedSampler without shuffle and num_samples"):
        joined.use_sampler(DistributedSampler(2, 0))
    with pytest.raises(ValueError, match="each joined dataset must come from a source that is read by index"):
        (seven().batch(1) + seven().batch(1)).use_sampler(DistributedSampler(2, 0, shuffle=False))


@pytest.mark.parametrize("mode", [Shuffle.FILES, Shuffle.PARTIAL, "global", 1])
def test_a_shuffle_mode_that_rows_do_not_know_is_named(mode, seven):
    with pytest.raises((ValueError, TypeError), match="shuffle must be"):
        seven(shuffle=mode)


@pytest.mark.parametrize("weights", [[0, 0], [-1, 2], [np.nan]])
def test_weights_that_mean_nothing_are_named(weights):
    with pytest.raises(ValueError, match="weights must be finite, not negative and not all 0"):
        WeightedRandomSampler(weights)


def test_a_sampler_may_be_read_by_index() -> None:
    class Order:
        def __getitem__(self, index: int) -> int:
            return [3, 0, 3][index]

        def __len__(self) -> int:
            return 3

    dataset = NumpySlicesDataset(list("abcd"), "x", sampler=Order())
    assert [str(x) for x, in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)] == ["d", "a", "d"]
