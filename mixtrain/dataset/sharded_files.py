"""Sources that read files one after the other, such as text files line by line."""

from __future__ import annotations

import abc
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mixtrain import checks
from mixtrain.dataset.cache import DatasetCache, cached
from mixtrain.dataset.order import Shuffle as ShuffleStage
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.sampling import check_shards, check_workers
from mixtrain.dataset.shuffle_mode import Shuffle, read_shuffle
from mixtrain.dataset.source_files import foreign_file
from mixtrain.dataset.stage import Row, Stage

Records = Callable[[str], Iterator[Any]]
Parse = Callable[[str, Any], Row]

BUFFER_SIZE = 10_000


class ShardedFiles(Stage, abc.ABC):
    """The rows of one shard of several files: every shard has equally many, the last one with the first rows again.

    `files`: The files, in order. `max_rows`: Maximum number of rows in a pass; 0: all. `shards`: The number of shards
    and the index of this one. `shuffle_files`: Whether each pass reads the files in another random order.
    """

    def __init__(
        self, columns: Sequence[str], files: Sequence[str], *, max_rows: int, shards: tuple[int, int],
        shuffle_files: bool,
    ) -> None:
        super().__init__(columns)
        self._files = list(files)
        self._max_rows = max_rows
        self._shards = shards
        self._shuffle_files = shuffle_files

    @abc.abstractmethod
    def count(self, path: str) -> int:
        """Return the number of rows in a file."""

    @functools.cached_property
    def _shard_rows(self) -> int:
        return -(-sum(map(self.count, self._files)) // self._shards[0])

    @property
    def size(self) -> int:
        return min(self._shard_rows, self._max_rows or self._shard_rows)

    @property
    def start(self) -> int:
        """The index of the shard's first row among those of all files."""
        return self._shard_rows * self._shards[1]

    def ordered(self, pass_seed: PassSeed) -> list[str]:
        """Return the files in the order of a pass, which all shards share."""
        count = len(self._files)
        order = pass_seed.common().generator().permutation(count) if self._shuffle_files else range(count)
        return [self._files[index] for index in order]


class TextFiles(ShardedFiles):
    """`ShardedFiles` of text. `records`: From a file to its records. `parse`: From a file and a record to a row."""

    def __init__(
        self, where: str, columns: Sequence[str], files: Sequence[str], records: Records, parse: Parse, **options: Any
    ) -> None:
        super().__init__(columns, files, **options)
        self._where = where
        self._records = records
        self._parse = parse

    def count(self, path: str) -> int:
        return sum(1 for _ in self._records(path))

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        files = self.ordered(pass_seed)
        start, stop, paths = 0, self._max_rows or None, iter(files)
        if self._shards[0] > 1:  # Only shards need the number of rows, for which all files are read.
            start, stop, paths = self.start, self.start + self.size, itertools.cycle(files)
        records = ((path, record) for path in paths for record in self._records(path))
        record = None
        for record in itertools.islice(records, start, stop):
            yield self._parse(*record)
        if record is None:
            raise foreign_file(self._where, files[0], "at least one row", "none")


def text_stage(
    where: str, columns: Sequence[str], files: Sequence[str], records: Records, parse: Parse, *,
    num_samples: int | None, num_parallel_workers: int | None, shuffle: bool | Shuffle | None, num_shards: int | None,
    shard_id: int | None, cache: DatasetCache | None,
) -> Stage:
    """Return the stage with the rows of text files, for the arguments of a dataset; see `TextFiles`."""
    mode = read_shuffle(where, shuffle, files=True)
    check_shards(where, num_shards, shard_id)
    check_workers(where, num_parallel_workers)
    source = TextFiles(
        where, columns, files, records, parse, shards=(num_shards or 1, shard_id or 0),
        max_rows=0 if num_samples is None else checks.integer(where, "num_samples", num_samples, at_least=0),
        shuffle_files=mode is not Shuffle.FALSE and cache is None,
    )
    stage = cached(where, source, cache)
    return ShuffleStage(stage, BUFFER_SIZE) if mode is Shuffle.GLOBAL else stage
