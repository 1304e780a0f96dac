"""MindDataset: rows from files written by `mixtrain.mindrecord.FileWriter` or `Dataset.save`."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.cache import DatasetCache, cached
from mixtrain.dataset.columns import find
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.row_files import RowFile
from mixtrain.dataset.sampling import SamplerLike, check_workers, choose_sampler
from mixtrain.dataset.shuffle_mode import Shuffle
from mixtrain.dataset.source import IndexedSource

_WHERE = "MindDataset"


class MindDataset(Dataset):
    """Rows from files written by `FileWriter` or `Dataset.save`; MindSpore's own MindRecord files are not supported.

    A column of bytes is uint8, of one dimension.

    Args:
        dataset_files: The first of the files that were written together, which lists the others; or a list of files.
        columns_list: Which columns to read, in that order; all by default, in the order of their names.
        shuffle, num_shards, shard_id, sampler: As in `Cifar10Dataset`.
        num_parallel_workers: Without effect.
        padded_sample, num_padded: A row, and how often it is added, so that shards have equal size.
        num_samples: Maximum number of rows in an epoch.
        cache: Stores the rows in memory after the first epoch.

    Raises: ValueError: A file is missing, truncated or of another format; a column is unknown.

    Example:
        >>> MindDataset("no/such/file")
        Traceback (most recent call last):
        ...
        ValueError: MindDataset: dataset_files must name files that exist; got 'no/such/file'. Write
        dataset_files="rows.mindrecord".
    """

    def __init__(
        self, dataset_files: str | list[str], columns_list: list[str] | None = None,
        num_parallel_workers: int | None = None, shuffle: bool | Shuffle | None = None, num_shards: int | None = None,
        shard_id: int | None = None, sampler: SamplerLike | None = None, padded_sample: Mapping[str, Any] | None = None,
        num_padded: int | None = None, num_samples: int | None = None, cache: DatasetCache | None = None,
    ) -> None:
        check_workers(_WHERE, num_parallel_workers)
        files = _open_files(dataset_files)
        columns = tuple(sorted(files[0].schema))
        if columns_list is not None:
            find(_WHERE, "columns_list", columns, columns_list)
            columns = tuple(columns_list)
        sampler = choose_sampler(
            _WHERE, sampler=sampler, shuffle=shuffle, num_samples=num_samples, num_shards=num_shards, shard_id=shard_id
        )
        padding = [padded_sample] * (num_padded or 0) if padded_sample is not None else []
        source = IndexedSource(_WHERE, _Rows(files, columns, padding), columns, sampler)
        super().__init__(cached(_WHERE, source, cache))


class _Rows:
    """The rows of several files and the padding rows after them, by index."""

    def __init__(self, files: Sequence[RowFile], columns: Sequence[str], padding: Sequence[Mapping[str, Any]]) -> None:
        self._parts: list[Any] = [*files, padding]
        self._columns = columns
        self._ends = list(itertools.accumulate(map(len, self._parts)))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        part = int(np.searchsorted(self._ends, index, side="right"))
        row = self._parts[part][index - self._ends[part] + len(self._parts[part])]
        return tuple(row[name] for name in self._columns)


def _open_files(dataset_files: Any) -> list[RowFile]:
    """Return the files of a list, or a file and those that were written with it."""
    write = 'dataset_files="rows.mindrecord"'
    if isinstance(dataset_files, (list, tuple)):
        if not dataset_files:
            raise checks.fail_value(_WHERE, "dataset_files must name a file", dataset_files, write)
        return [RowFile(_WHERE, path) for path in dataset_files]
    checks.instance(_WHERE, "dataset_files", dataset_files, (str, pathlib.Path), write)
    first = RowFile(_WHERE, dataset_files)
    folder = pathlib.Path(dataset_files).parent
    return [RowFile(_WHERE, folder / name) for name in first.files]
