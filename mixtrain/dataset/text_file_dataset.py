"""TextFileDataset: the lines of text files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mixtrain.dataset.cache import DatasetCache
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.sharded_files import text_stage
from mixtrain.dataset.shuffle_mode import Shuffle
from mixtrain.dataset.source_files import find_files, foreign_file

_WHERE = "TextFileDataset"


class TextFileDataset(Dataset):
    """The lines of text files, which are read in the order of their names; empty lines are left out.

    The column is text, a string without the end of the line.

    Args:
        dataset_files: A path or glob pattern, or a list of them; the files are in UTF-8.
        num_samples: Maximum number of rows of each shard in an epoch.
        num_parallel_workers: Without effect.
        shuffle: True or `Shuffle.GLOBAL`: files in random order and rows sampled from a buffer of 10000;
            `Shuffle.FILES`: files in random order; False: neither.
        num_shards, shard_id: Number of shards that the rows are divided into, and which of them to read, from 0.
        cache: Stores the rows in memory after the first epoch.

    Raises: ValueError: A file is missing; on reading, it is not in UTF-8, or there is no row.

    Example:
        >>> TextFileDataset("no/such/file")
        Traceback (most recent call last):
        ...
        ValueError: TextFileDataset: dataset_files must name files that exist; got 'no/such/file'. Write
        dataset_files="train*.txt".
    """

    def __init__(
        self, dataset_files: str | list[str], num_samples: int | None = None, num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL, num_shards: int | None = None, shard_id: int | None = None,
        cache: DatasetCache | None = None,
    ) -> None:
        super().__init__(text_stage(
            _WHERE, ("text",), find_files(_WHERE, dataset_files, "train*.txt"), _lines,
            lambda path, line: (np.array(line),), num_samples=num_samples, num_parallel_workers=num_parallel_workers,
            shuffle=shuffle, num_shards=num_shards, shard_id=shard_id, cache=cache,
        ))


def _lines(path: str) -> Iterator[str]:
    with open(path, encoding="utf-8", newline="\n") as file:  # No other character ends a line.
        try:
            for line in file:
                if text := line.removesuffix("\n"):
                    yield text
        except UnicodeDecodeError as error:
            raise foreign_file(_WHERE, path, "text in UTF-8", str(error)) from error
