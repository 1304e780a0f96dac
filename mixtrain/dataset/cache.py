"""DatasetCache: the rows of a source or of a map, stored in memory in the first epoch."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

from mixtrain import checks
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.sampler import BuiltinSampler
from mixtrain.dataset.samplers import SequentialSampler
from mixtrain.dataset.stage import Row, Stage

_MEGABYTE = 1 << 20


@dataclasses.dataclass
class CacheStatistics:
    """Size of a cache: mean bytes of a row, `avg_cache_sz`, and rows in memory and on disk, of which there are none.
    """

    avg_cache_sz: int = 0
    num_mem_cached: int = 0
    num_disk_cached: int = 0


class DatasetCache:
    """A cache in memory, passed as `cache` to a source or to `map`.

    There is no server: each source or map with the cache stores its own rows in this process.

    Args:
        session_id: Any positive number.
        size: Maximum megabytes of one source or map; rows that need more are recomputed in each epoch. 0: no limit.
        spilling: Without effect: nothing is written to disk.
        hostname: Without effect, as `port`, `num_connections` and `prefetch_size`.

    Example:
        >>> from mixtrain.dataset import GeneratorDataset
        >>> cache = DatasetCache(session_id=1, size=0)
        >>> len(list(GeneratorDataset([1, 2], "x").map(lambda x: x + 1, "x", cache=cache)))
        2
    """

    def __init__(
        self, session_id: int, size: int = 0, spilling: bool = False, hostname: str | None = None,
        port: int | None = None, num_connections: int | None = None, prefetch_size: int | None = None,
    ) -> None:
        self.session_id = checks.integer("DatasetCache", "session_id", session_id, at_least=1)
        self.size = checks.integer("DatasetCache", "size", size, at_least=0)
        self.spilling = checks.boolean("DatasetCache", "spilling", spilling)
        self.hostname, self.port = hostname, port
        self.num_connections, self.prefetch_size = num_connections, prefetch_size
        self._statistics = CacheStatistics()

    def get_stat(self) -> CacheStatistics:
        """Return the number of rows of the last source or map that filled the cache, and their mean size."""
        return self._statistics

    def note(self, rows: int, size: int) -> None:
        """Record that `rows` rows of `size` bytes in total are stored."""
        self._statistics = CacheStatistics(size // max(rows, 1), rows)


class Cached(Stage):
    """The rows of the parent, computed once.

    If the parent has a sampler, the rows are stored in the order of the source and read in the sampler's order;
    otherwise they are stored and read in the order of one pass.
    """

    row_by_row = True

    def __init__(self, parent: Stage, cache: DatasetCache) -> None:
        super().__init__(parent.columns, parent)
        self._cache = cache
        # A dict, because copies of this stage with other samplers share the rows; None if the rows are too large.
        self._stored: dict[str, list[Row] | None] = {}

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        sampler = self.sampler
        stored = self._all(sampler)
        if stored is None:
            yield from self.parents[0].rows(pass_seed)
            return
        order = range(len(stored)) if sampler is None else sampler.indices(pass_seed, len(stored), self.labels).tolist()
        for index in order:
            yield tuple(value.copy() for value in stored[index])

    def _all(self, sampler: BuiltinSampler | None) -> list[Row] | None:
        """Return every row in the order of the source; None if they need too much memory."""
        if "rows" not in self._stored:
            parent = self.parents[0]
            ordered = parent if sampler is None else parent.with_sampler(SequentialSampler())
            self._stored["rows"] = self._read(ordered)
        return self._stored["rows"]

    def _read(self, stage: Stage) -> list[Row] | None:
        rows: list[Row] = []
        total = 0
        for row in stage.rows(PassSeed.start().at_epoch(0)):
            total += sum(value.nbytes for value in row)
            if self._cache.size and total > self._cache.size * _MEGABYTE:
                warnings.warn(
                    f"DatasetCache: the rows need more than size={self._cache.size} megabytes and are recomputed in "
                    "each epoch. Write a larger size, or size=0.",
                    stacklevel=2,
                )
                return None
            rows.append(row)
        self._cache.note(len(rows), total)
        return rows


def check_cache(where: str, cache: Any) -> None:
    """Raise if `cache` is neither None nor a `DatasetCache`."""
    if cache is not None:
        checks.instance(where, "cache", cache, DatasetCache, "cache=DatasetCache(session_id=1)")


def cached(where: str, stage: Stage, cache: DatasetCache | None) -> Stage:
    """Return the stage with its rows stored in `cache`; the stage itself if that is None."""
    check_cache(where, cache)
    return stage if cache is None else Cached(stage, cache)
