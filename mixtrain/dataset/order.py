"""Stages that pass rows on as they are, but others, in another order or again: shuffle, repeat, take, skip, filter."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from mixtrain.dataset.columns import find, unboxed
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row, Stage

_CHUNK = 1024


class Shuffle(Stage):
    """A buffer from which the next row is drawn; each pass draws anew."""

    def __init__(self, parent: Stage, buffer_size: int) -> None:
        super().__init__(parent.columns, parent)
        self._buffer_size = buffer_size

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        generator = pass_seed.generator()
        rows = self.parents[0].rows(pass_seed.into(0))
        buffer = list(itertools.islice(rows, self._buffer_size))
        for row, chance in zip(rows, _chances(generator), strict=False):
            place = int(chance * self._buffer_size)
            drawn, buffer[place] = buffer[place], row
            yield drawn
        for place in generator.permutation(len(buffer)).tolist():
            yield buffer[place]


def _chances(generator: np.random.Generator) -> Iterator[float]:
    """Yield numbers from 0 to 1 without end."""
    while True:
        yield from generator.random(_CHUNK).tolist()


class SyncPoint(Stage):
    """Rows as they are, at a named place that `sync_update` finds.

    Attributes:
        name: The name.
        callback: What is called with the data of an update.
    """

    def __init__(self, parent: Stage, name: str, callback: Callable[[Any], Any] | None) -> None:
        super().__init__(parent.columns, parent)
        self.name = name
        self.callback = callback

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        return self.parents[0].rows(pass_seed.into(0))


def sync_points(stage: Stage) -> Iterator[SyncPoint]:
    """Yield the named places of a pipeline."""
    if isinstance(stage, SyncPoint):
        yield stage
    for parent in stage.parents:
        yield from sync_points(parent)


class Repeat(Stage):
    """The rows `count` times, without end where it is None; a shuffle below draws anew each time."""

    def __init__(self, parent: Stage, count: int | None) -> None:
        super().__init__(parent.columns, parent)
        self._count = count

    @property
    def size(self) -> int | None:
        size = self.parents[0].size
        return size if size is None or self._count is None else size * self._count

    @property
    def infinite(self) -> bool:
        return self._count is None or super().infinite

    @property
    def repeat_count(self) -> int:
        inner = self.parents[0].repeat_count if isinstance(self.parents[0], Repeat) else 1
        return -1 if self._count is None or inner == -1 else inner * self._count

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        for turn in itertools.count() if self._count is None else range(self._count):
            row = None
            for row in self.parents[0].rows(pass_seed.into(turn)):
                yield row
            if row is None:
                return


class Take(Stage):
    """The first `count` rows."""

    def __init__(self, parent: Stage, count: int) -> None:
        super().__init__(parent.columns, parent)
        self._count = count

    @property
    def size(self) -> int | None:
        if self.parents[0].infinite:
            return self._count
        size = self.parents[0].size
        return None if size is None else min(size, self._count)

    @property
    def infinite(self) -> bool:
        return False

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        return itertools.islice(self.parents[0].rows(pass_seed), self._count)


class Skip(Stage):
    """The rows after the first `count`."""

    def __init__(self, parent: Stage, count: int) -> None:
        super().__init__(parent.columns, parent)
        self._count = count

    @property
    def size(self) -> int | None:
        size = self.parents[0].size
        return None if size is None else max(0, size - self._count)

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        return itertools.islice(self.parents[0].rows(pass_seed), self._count, None)


class Filter(Stage):
    """The rows for which a function of some columns is true."""

    def __init__(self, parent: Stage, predicate: Callable[..., Any], columns: Sequence[str]) -> None:
        super().__init__(parent.columns, parent)
        self._predicate = predicate
        self._inputs = find("filter", "input_columns", parent.columns, columns)

    @property
    def size(self) -> int | None:
        return None

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        for row in self.parents[0].rows(pass_seed):
            if self._predicate(*(unboxed(row[index]) for index in self._inputs)):
                yield row


class Pick(Stage):
    """The rows at the given positions of one fixed pass: the same rows in every epoch."""

    def __init__(self, parent: Stage, positions: Collection[int], fixed: PassSeed) -> None:
        super().__init__(parent.columns, parent)
        self._positions = frozenset(positions)
        self._fixed = fixed

    @property
    def size(self) -> int | None:
        return len(self._positions)

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        for position, row in enumerate(self.parents[0].rows(self._fixed)):
            if position in self._positions:
                yield row
