"""The sources: rows from an object that is read by index, from one that is iterated, and from arrays."""

from __future__ import annotations

import copy
import itertools
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.columns import to_array
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.sampler import BuiltinSampler
from mixtrain.dataset.stage import Row, Stage


def read_row(where: str, value: Any, columns: Sequence[str]) -> Row:
    """Return a row of a source, a tuple, list or generator, or the value of the one column, as arrays."""
    if isinstance(value, types.GeneratorType):
        value = tuple(value)
    values = value if isinstance(value, (tuple, list)) else (value,)
    if len(values) != len(columns):
        raise ValueError(
            f"{where}: expected {len(columns)} columns in every row, as column_names ({checks.join_names(columns)}); "
            f"got a row of {len(values)}. Write one name for each value of a row."
        )
    return tuple(to_array(where, name, item) for name, item in zip(columns, values, strict=True))


class IndexedSource(Stage):
    """Rows of an object with `__getitem__` and `__len__`, in a sampler's order.

    Attributes:
        length: Number of rows of the object.
    """

    def __init__(
        self, where: str, source: Any, columns: Sequence[str], sampler: BuiltinSampler, *, length: int | None = None,
        labels: np.ndarray | None = None,
    ) -> None:
        super().__init__(columns)
        self.where = where
        self.source = source
        self.length = len(source) if length is None else length
        self._labels = labels
        self._sampler = sampler

    @property
    def size(self) -> int | None:
        return self._sampler.count(self.length, self._labels)

    @property
    def sampler(self) -> BuiltinSampler:
        return self._sampler

    @property
    def labels(self) -> np.ndarray | None:
        return self._labels

    def with_sampler(self, sampler: BuiltinSampler) -> Stage:
        copied = copy.copy(self)
        copied._sampler = sampler
        return copied

    def indices(self, pass_seed: PassSeed) -> np.ndarray:
        """Return the indices of a pass, in order."""
        if not self.length:
            raise _empty(self.where)
        return self._sampler.indices(pass_seed, self.length, self._labels)

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        for index in self.indices(pass_seed).tolist():
            yield read_row(self.where, self.source[index], self.columns)


class ArraySource(IndexedSource):
    """Rows of arrays of equal length; a block of rows is read by indexing each array once."""

    def __init__(
        self, where: str, source: Sequence[np.ndarray], columns: Sequence[str], sampler: BuiltinSampler, *,
        labels: np.ndarray | None = None,
    ) -> None:
        super().__init__(where, source, columns, sampler, length=len(source[0]), labels=labels)

    @property
    def reads_blocks(self) -> bool:
        return True

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        for index in self.indices(pass_seed).tolist():
            yield tuple(np.array(array[index]) for array in self.source)

    def blocks(self, pass_seed: PassSeed, count: int) -> Iterator[Row]:
        indices = self.indices(pass_seed)
        for start in range(0, len(indices), count):
            yield tuple(array[indices[start : start + count]] for array in self.source)


class IteratedSource(Stage):
    """Rows of an iterable, or of a function that returns one, in their own order."""

    def __init__(self, where: str, source: Any, columns: Sequence[str], num_samples: int | None) -> None:
        super().__init__(columns)
        self._where = where
        self._open = _opener(where, source)
        self._num_samples = num_samples
        self._length = len(source) if hasattr(source, "__len__") else None
        self._yielded_rows = False

    @property
    def size(self) -> int | None:
        if self._length is None or self._num_samples is None:
            return self._length
        return min(self._length, self._num_samples)

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        row = None
        for row in itertools.islice(self._open(), self._num_samples):
            self._yielded_rows = True
            yield read_row(self._where, row, self.columns)
        if row is None and not self._yielded_rows:
            raise _empty(self._where)
        if row is None:
            raise ValueError(
                f"{self._where}: expected rows in every epoch; got none, because the source is an iterator that was "
                "used up before. Write a function that returns a new iterator, or an __iter__ that starts from the "
                "beginning."
            )


class _Replay:
    """An iterator that can be read only once, stored row by row so that later passes read it again."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator = iterator
        self._rows: list[Any] = []

    def __call__(self) -> Iterator[Any]:
        for index in itertools.count():
            if index == len(self._rows):
                try:
                    self._rows.append(_copied(next(self._iterator)))
                except StopIteration:
                    return
            yield self._rows[index]


def _copied(value: Any) -> Any:
    """Return a row with copies of its arrays, which the source may overwrite."""
    if isinstance(value, (tuple, list)):
        return tuple(_copied(item) for item in value)
    return value.copy() if isinstance(value, np.ndarray) else value


def _opener(where: str, source: Any) -> Callable[[], Iterator[Any]]:
    """Return the function that starts a pass over an iterable, or over what a function returns."""
    if isinstance(source, Iterable):
        # The __iter__ of a user's class may start from the beginning; a generator, zip(...) or iter(...) cannot.
        has_own_iter = isinstance(getattr(type(source), "__iter__", None), types.FunctionType)
        if hasattr(source, "__next__") and not has_own_iter:
            return _Replay(iter(source))
        return lambda: iter(source)

    def open_source() -> Iterator[Any]:
        rows = source()
        if not isinstance(rows, Iterable):
            raise TypeError(
                f"{where}: expected a source function that returns an iterable of rows; got one that returns "
                f"{type(rows).__name__}. Write yield in the function."
            )
        return iter(rows)

    return open_source


def _empty(where: str) -> ValueError:
    return ValueError(f"{where}: expected at least one row in the source; got none. Write a source that has rows.")
