"""Shuffle, repeat, take, skip, filter: exact rows, sizes, and orders that a seed repeats."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.dataset import GeneratorDataset, NumpySlicesDataset
from mixtrain.seed import set_seed


def permutation(seed, *path, size=7):
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path)).permutation(size).tolist()


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (lambda d: d.take(2), [0, 1]),
        (lambda d: d.take(), [0, 1, 2, 3, 4, 5, 6]),
        (lambda d: d.take(99), [0, 1, 2, 3, 4, 5, 6]),
        (lambda d: d.skip(5), [5, 6]),
        (lambda d: d.skip(0).take(1), [0]),
        (lambda d: d.skip(99), []),
        (lambda d: d.take(2).repeat(3), [0, 1, 0, 1, 0, 1]),
        (lambda d: d.take(2).repeat().take(5), [0, 1, 0, 1, 0]),
        (lambda d: d.take(2).repeat(-1).skip(1).take(2), [1, 0]),
        (lambda d: d.skip(99).repeat().take(5), []),
    ],
)
def test_rows_and_size(step, expected, seven, epochs):
    dataset = step(seven())
    assert epochs(dataset, 2) == [expected] * 2
    assert len(dataset) == len(expected) or not expected


def test_filter_keeps_the_rows_of_which_the_predicate_is_true(seven, values):
    dataset = seven().filter(lambda label: label % 2 == 0, "label")
    assert values(dataset) == [0, 2, 4, 6]
    assert dataset.get_dataset_size() == 4
    assert values(seven().filter(lambda x, label: x + label > 8)) == [5, 6]


@pytest.mark.parametrize("make", [lambda: None, lambda: NumpySlicesDataset(np.arange(7), "x")])
def test_a_random_access_source_is_shuffled_by_default_anew_in_each_epoch(make, seven, epochs):
    dataset = make() or seven(shuffle=None)
    set_seed(3)
    expected = [permutation(3, epoch) for epoch in range(3)]
    assert epochs(dataset, 3) == expected
    assert epochs(dataset, 3) == expected
    assert len({tuple(order) for order in expected}) == 3


def test_without_a_seed_every_run_has_its_own_order(epochs):
    dataset = NumpySlicesDataset(np.arange(50), "x")
    assert epochs(dataset, 1) != epochs(dataset, 1)


def test_repeat_shuffles_anew_each_time(seven, epochs):
    set_seed(1)
    assert epochs(seven(shuffle=True).repeat(2), 2) == [
        permutation(1, 0, 0) + permutation(1, 0, 1),
        permutation(1, 1, 0) + permutation(1, 1, 1),
    ]


def test_steps_that_keep_the_order_do_not_change_it(seven, values):
    set_seed(1)
    plain = values(seven(shuffle=True))
    assert values(seven(shuffle=True).map(lambda x: x).rename("x", "y").project(["label"])) == plain


@pytest.mark.parametrize("buffer_size", [2, 3, 7, 100])
def test_a_shuffle_buffer_gives_every_row_once_in_an_order_that_the_seed_repeats(buffer_size, seven, epochs):
    set_seed(5)
    dataset = seven().shuffle(buffer_size)
    first, second = epochs(dataset, 2)
    assert sorted(first) == sorted(second) == list(range(7))
    assert epochs(dataset, 2) == [first, second]
    for index, label in enumerate(first):
        assert label < index + buffer_size


def test_a_full_shuffle_buffer_mixes_evenly():
    set_seed(0)
    iterator = NumpySlicesDataset(np.arange(4), shuffle=False).shuffle(4).create_tuple_iterator(output_numpy=True)
    firsts = np.bincount([next(iter(list(iterator)))[0] for _ in range(2000)], minlength=4)
    assert np.abs(firsts - 500).max() < 100


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        (lambda d: d.shuffle(1), ValueError, "buffer_size must be at least 2; got 1"),
        (lambda d: d.repeat(0), ValueError, "repeat: count must be at least 1; got 0"),
        (lambda d: d.repeat(1.5), TypeError, "count must be an int"),
        (lambda d: d.take(0), ValueError, "take: count must be at least 1; got 0"),
        (lambda d: d.skip(-1), ValueError, "skip: count must be at least 0; got -1"),
        (lambda d: d.filter(3), TypeError, "predicate must be a function"),
        (lambda d: d.filter(bool, "z"), ValueError, "input_columns must be one of x, label; got 'z'"),
    ],
)
def test_wrong_arguments_are_named(step, error, message, seven):
    with pytest.raises(error, match=message):
        step(seven())


def test_repeat_before_batch_lets_batches_run_across_epochs(values):
    dataset = GeneratorDataset(range(4), "x", shuffle=False)
    assert values(dataset.repeat(2).batch(3)) == [[0, 1, 2], [3, 0, 1], [2, 3]]
    assert values(dataset.batch(3).repeat(2)) == [[0, 1, 2], [3], [0, 1, 2], [3]]
