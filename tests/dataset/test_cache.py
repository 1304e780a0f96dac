"""DatasetCache: rows made once and read in the sampler's order, its limit, and its numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.dataset import DatasetCache, NumpySlicesDataset, RandomSampler


@pytest.fixture
def counted():
    """Return a function for `map`, and the list of what it was called with."""
    calls = []

    def ten_times(x):
        calls.append(int(x))
        return x * 10

    return ten_times, calls


def test_a_mapped_row_is_made_once_and_shuffled_anew_in_each_epoch(counted, epochs):
    function, calls = counted
    data = NumpySlicesDataset(np.arange(20), "x").map(function, "x", cache=DatasetCache(1))
    first, second = epochs(data, 2)
    assert sorted(first) == sorted(second) == [10 * k for k in range(20)]
    assert first != second
    assert calls == list(range(20))


def test_only_the_rows_of_a_shard_come_from_the_cache(counted, values):
    function, _ = counted
    data = NumpySlicesDataset(np.arange(6), "x", shuffle=False, num_shards=2, shard_id=1)
    assert values(data.map(function, "x", cache=DatasetCache(1))) == [10, 30, 50]


def test_another_sampler_reads_the_same_kept_rows(counted, values):
    function, calls = counted
    data = NumpySlicesDataset(np.arange(4), "x", shuffle=False).map(function, "x", cache=DatasetCache(1))
    assert values(data) == [0, 10, 20, 30]
    data.use_sampler(RandomSampler())
    assert sorted(values(data)) == [0, 10, 20, 30]
    assert len(calls) == 4


def test_rows_above_a_step_that_mixes_them_are_kept_as_they_came(counted, epochs):
    function, calls = counted
    data = NumpySlicesDataset(np.arange(4), "x", shuffle=False).batch(2).map(lambda x: function(x[0]), "x")
    cached = NumpySlicesDataset(np.arange(4), "x", shuffle=False).batch(2).map(
        lambda x: function(x[0]), "x", cache=DatasetCache(1)
    )
    assert epochs(data, 2) == epochs(cached, 2) == [[0, 20]] * 2
    assert calls == [0, 2] * 3


def test_a_kept_row_is_not_the_readers(epochs):
    data = NumpySlicesDataset(np.zeros((2, 1)), "x").map(lambda x: x, "x", cache=DatasetCache(1))
    run = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
    for _ in range(2):
        for (x,) in run:
            x += 1
            assert x.tolist() == [1]


def test_rows_beyond_the_limit_are_made_anew_with_one_warning(counted, epochs):
    function, calls = counted
    cache = DatasetCache(1, size=1)
    data = NumpySlicesDataset(np.arange(3), "x", shuffle=False).map(
        lambda x: np.full(1 << 16, function(x)), "x", cache=cache
    )
    with pytest.warns(UserWarning, match="need more than size=1 megabytes.*Write a larger size"):
        first, second = epochs(data, 2)
    assert [row[0] for row in first] == [row[0] for row in second] == [0, 10, 20]
    assert len(calls) == 9
    assert cache.get_stat().num_mem_cached == 0


def test_the_numbers_of_a_cache(values):
    cache = DatasetCache(session_id=3, size=0, spilling=True)
    values(NumpySlicesDataset(np.zeros((5, 4)), "x").map(lambda x: x, "x", cache=cache))
    stat = cache.get_stat()
    assert (stat.avg_cache_sz, stat.num_mem_cached, stat.num_disk_cached) == (32, 5, 0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"session_id": 0}, ValueError, "session_id must be at least 1"),
        ({"session_id": "1"}, TypeError, "session_id must be an int"),
        ({"session_id": 1, "size": -1}, ValueError, "size must be at least 0"),
        ({"session_id": 1, "spilling": 1}, TypeError, "spilling must be True or False"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        DatasetCache(**arguments)


def test_map_takes_only_a_cache_as_cache():
    with pytest.raises(TypeError, match="map: cache must be a DatasetCache"):
        NumpySlicesDataset([1], "x").map(lambda x: x, "x", cache=True)
