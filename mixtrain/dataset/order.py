"""Stages that select, reorder or repeat rows without changing them: shuffle, repeat, take, skip, filter."""

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
    """Rows sampled from a buffer; every pass samples another order."""

    def __init__(self, parent: Stage, buffer_size: int) -> None:
        super().__init__(parent.columns, parent)
        self._buffer_size = buffer_size

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        generator = pass_seed.generator()
        rows = self.parents[0].rows(pass_seed.fold_in(0))
        # Each further row replaces a random row of the buffer, which is yielded; the rest is yielded in random order.
        buffer = list(itertools.islice(rows, self._buffer_size))
        for row, number in zip(rows, _uniform_numbers(generator), strict=False):
            index = int(number * self._buffer_size)
            sampled, buffer[index] = buffer[index], row
            yield sampled
        for index in generator.permutation(len(buffer)).tolist():
            yield buffer[index]


def _uniform_numbers(generator: np.random.Generator) -> Iterator[float]:
    """Yield random numbers from [0, 1) without end, generated in chunks."""
    while True:
        yield from generator.random(_CHUNK).tolist()


class SyncPoint(Stage):
    """A named point of a pipeline that `sync_update` finds; its rows are those of the parent.

    Attributes:
        name: The name.
        callback: Called with the data of an update.
    """

    def __init__(self, parent: Stage, name: str, callback: Callable[[Any], Any] | None) -> None:
        super().__init__(parent.columns, parent)
        self.name = name
        self.callback = callback

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        return self.parents[0].rows(pass_seed.fold_in(0))


def sync_points(stage: Stage) -> Iterator[SyncPoint]:
    """Yield the named points of a pipeline."""
    if isinstance(stage, SyncPoint):
        yield stage
    for parent in stage.parents:
        yield from sync_points(parent)


class Repeat(Stage):
    """The rows repeated `count` times, infinitely if it is None; a shuffle below reorders them each time."""

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
        for repetition in itertools.count() if self._count is None else range(self._count):
            row = None
            for row in self.parents[0].rows(pass_seed.fold_in(repetition)):
                yield row
            if row is None:  # An infinite repetition of no rows would never return.
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
