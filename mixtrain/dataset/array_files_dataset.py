"""The base class of datasets of labelled images in a few binary files, which are read into memory."""

from __future__ import annotations

import abc
import pathlib
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from mixtrain import checks
from mixtrain.dataset.cache import DatasetCache, check_cache
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.sampling import SamplerLike, check_workers, choose_sampler
from mixtrain.dataset.source import ArraySource
from mixtrain.dataset.source_files import find_folder


class ArrayFilesDataset(Dataset, abc.ABC):
    """Images and labels from the files of a folder; a subclass defines `_COLUMNS` and `_read`. See `Cifar10Dataset`."""

    _COLUMNS: ClassVar[tuple[str, ...]]
    _USAGES: ClassVar[tuple[str, ...]] = ("train", "test", "all")

    def __init__(
        self, dataset_dir: str | pathlib.Path, usage: str | None = None, num_samples: int | None = None,
        num_parallel_workers: int | None = None, shuffle: bool | None = None, sampler: SamplerLike | None = None,
        num_shards: int | None = None, shard_id: int | None = None, cache: DatasetCache | None = None,
    ) -> None:
        where = type(self).__name__
        part = "all" if usage is None else checks.one_of(where, "usage", usage, self._USAGES)
        check_workers(where, num_parallel_workers)
        check_cache(where, cache)
        sampler = choose_sampler(
            where, sampler=sampler, shuffle=shuffle, num_samples=num_samples, num_shards=num_shards, shard_id=shard_id
        )
        arrays = self._read(where, find_folder(where, dataset_dir), part)
        labels = arrays[1] if arrays[1].ndim == 1 else arrays[1][:, 0]
        super().__init__(ArraySource(where, arrays, self._COLUMNS, sampler, labels=labels))

    @abc.abstractmethod
    def _read(self, where: str, folder: pathlib.Path, usage: str) -> Sequence[np.ndarray]:
        """Return the images, then one array of labels per further column."""


def join(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the arrays concatenated; a single array itself, without a copy."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
