"""Split: parts that share no row, the same rows in every epoch."""

from __future__ import annotations

import pytest

from mixtrain.dataset import GeneratorDataset
from mixtrain.seed import set_seed


def test_in_order_parts_follow_each_other(seven, values):
    assert [values(part) for part in seven().split([4, 3], randomize=False)] == [[0, 1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("sizes", "expected"), [([0.5, 0.5], [3, 4]), ([0.8, 0.2], [6, 1]), ([0.4, 0.3, 0.3], [3, 2, 2]), ([2, 5], [2, 5])]
)
def test_sizes_of_the_parts(sizes, expected, seven):
    assert [len(part) for part in seven().split(sizes)] == expected


@pytest.mark.parametrize("shuffle", [False, None])
@pytest.mark.parametrize("step", [lambda d: d, lambda d: d.map(lambda x: x)])
@pytest.mark.parametrize("randomize", [False, True])
def test_parts_share_no_row_and_keep_theirs_in_every_epoch_even_without_a_seed(
    shuffle, step, randomize, seven, epochs
):
    first_part, second_part = step(seven(shuffle=shuffle)).split([4, 3], randomize)
    first, again = epochs(first_part, 2)
    assert sorted(first) == sorted(again)
    assert sorted(first + epochs(second_part, 1)[0]) == list(range(7))


def test_a_part_of_a_shuffled_source_is_shuffled_anew_in_each_epoch(epochs):
    set_seed(1)
    part, _ = GeneratorDataset(range(40), "x").split([20, 20])
    first, second = epochs(part, 2)
    assert first != second
    assert sorted(first) == sorted(second)


def test_a_seed_repeats_the_deal(seven, values):
    set_seed(9)
    deals = [[sorted(values(part)) for part in seven().split([0.5, 0.5])] for _ in range(2)]
    assert deals[0] == deals[1]


def test_batches_can_be_split(seven, values):
    first, second = seven().batch(2).split([2, 2], randomize=False)
    assert values(first) + values(second) == [[0, 1], [2, 3], [4, 5], [6]]


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ([4, 4], ValueError, r"sizes must be positive and add up to 7 rows; got \[4, 4\]"),
        ([8, -1], ValueError, "sizes must be positive and add up to 7 rows"),
        ([0.5, 0.4], ValueError, "shares must add up to 1"),
        ([0.99, 0.01], ValueError, "every share of 7 rows must be at least one row"),
        (7, TypeError, "sizes must be a list or tuple"),
        (["a"], TypeError, "sizes must be a number"),
        ([], ValueError, "shares must add up to 1"),
    ],
)
def test_wrong_sizes_are_named(sizes, error, message, seven):
    with pytest.raises(error, match=message):
        seven().split(sizes)


def test_a_shard_cannot_be_split(seven):
    with pytest.raises(ValueError, match="must not be sharded before"):
        seven(num_shards=2, shard_id=0).split([2, 2])
