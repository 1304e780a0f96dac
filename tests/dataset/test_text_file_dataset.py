"""TextFileDataset: lines, shards of lines, shuffles by the seed, and one sentence for each broken file."""

from __future__ import annotations

import pytest

from mixtrain.dataset import DatasetCache, Shuffle, TextFileDataset
from mixtrain.seed import set_seed

EVERY = ["a 0", "a 1", " a 2\r", "b 0", "c é", "c 1", "c\x0b2"]


@pytest.fixture
def pattern(tmp_path):
    for name, contents in {"a": "a 0\na 1\n\n a 2\r", "b": "b 0\n", "c": "\nc é\nc 1\nc\x0b2\n\n"}.items():
        (tmp_path / f"{name}.txt").write_bytes(contents.encode())
    return str(tmp_path / "*.txt")


def lines(dataset, epochs=1):
    run = dataset.create_dict_iterator(num_epochs=epochs, output_numpy=True)
    return [[str(row["text"]) for row in run] for _ in range(epochs)]


def test_each_line_that_is_not_empty_is_a_row_without_its_newline(pattern):
    dataset = TextFileDataset(pattern, shuffle=False, num_parallel_workers=4)
    assert lines(dataset) == [EVERY]
    assert (dataset.get_col_names(), dataset.get_dataset_size(), dataset.output_shapes()) == (["text"], 7, [[]])
    assert lines(dataset.batch(4).map(lambda text: text[0], "text").repeat(2)) == [["a 0", "c é"] * 2]


@pytest.mark.parametrize(("count", "expected"), [(0, EVERY), (2, EVERY[:2]), (100, EVERY)])
def test_num_samples_limits_the_rows(count, expected, pattern):
    dataset = TextFileDataset(pattern, num_samples=count, shuffle=False)
    assert (lines(dataset), len(dataset)) == ([expected], len(expected))


@pytest.mark.parametrize("shards", [2, 3, 20])
def test_shards_have_equally_many_rows_and_the_last_one_the_first_rows_again(shards, pattern):
    size = -(-7 // shards)
    for shard in range(shards):
        dataset = TextFileDataset(pattern, num_shards=shards, shard_id=shard, shuffle=False)
        assert lines(dataset) == [[EVERY[(size * shard + k) % 7] for k in range(size)]]
        assert len(dataset) == size
    assert lines(TextFileDataset(pattern, 2, num_shards=2, shard_id=1, shuffle=False)) == [EVERY[4:6]]


def test_rows_are_shuffled_by_the_seed_anew_in_each_epoch(pattern):
    set_seed(3)
    first, second = lines(TextFileDataset(pattern), 2)
    assert sorted(first) == sorted(second) == sorted(EVERY)
    assert first != second
    set_seed(3)
    assert lines(TextFileDataset(pattern), 2) == [first, second]


def test_files_are_shuffled_and_shards_still_divide_them(pattern):
    set_seed(1)
    shards = [
        lines(TextFileDataset(pattern, shuffle=Shuffle.FILES, num_shards=7, shard_id=shard), 4) for shard in range(7)
    ]
    epochs = [[row for shard in shards for row in shard[epoch]] for epoch in range(4)]
    assert all(sorted(epoch) == sorted(EVERY) for epoch in epochs)
    assert all(epoch.index("c 1") == epoch.index("c é") + 1 for epoch in epochs)
    assert len(set(map(tuple, epochs))) > 1


@pytest.mark.parametrize("shuffle", [False, True])
def test_cached_rows_are_read_from_the_files_once(shuffle, pattern, tmp_path):
    dataset = TextFileDataset(pattern, shuffle=shuffle, cache=DatasetCache(1))
    (first,) = lines(dataset)
    for path in tmp_path.iterdir():
        path.unlink()
    assert sorted(first) == sorted(lines(dataset)[0]) == sorted(EVERY)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dataset_files": "nothing"}, ValueError, "dataset_files must name files that exist; got 'nothing'"),
        ({"dataset_files": []}, ValueError, "dataset_files must name a file"),
        ({"dataset_files": 3}, TypeError, "dataset_files must be"),
        ({"dataset_files": [3]}, TypeError, "each of dataset_files must be"),
        ({"num_samples": 1.5}, TypeError, "num_samples must be an int"),
        ({"num_samples": -1}, ValueError, "num_samples must be at least 0"),
        ({"shard_id": 0}, ValueError, "num_shards and shard_id go together"),
        ({"shuffle": "yes"}, TypeError, "shuffle must be True or False, or a Shuffle"),
        ({"cache": 1}, TypeError, "cache must be a DatasetCache"),
    ],
)
def test_wrong_arguments_are_named_at_once(arguments, error, message, pattern):
    with pytest.raises(error, match=f"TextFileDataset: {message}"):
        TextFileDataset(**{"dataset_files": pattern, **arguments})


@pytest.mark.parametrize("shards", [None, 2])
@pytest.mark.parametrize(
    ("contents", "message"),
    [(b"\n\n", "expected at least one row in .*; got none"), (b"\xff\n", "expected text in UTF-8")],
)
def test_a_file_without_rows_or_of_another_encoding_is_named(contents, message, shards, tmp_path):
    (tmp_path / "x").write_bytes(contents)
    dataset = TextFileDataset(str(tmp_path / "x"), num_shards=shards, shard_id=shards and 1)
    for error in (ValueError, RuntimeError):
        with pytest.raises(error, match=f"TextFileDataset: {message}"):
            lines(dataset)
