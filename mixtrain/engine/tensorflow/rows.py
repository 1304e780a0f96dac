"""Rows that Python code makes: what must hold for each of them, and their crossing into `tf.data` in blocks."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

Row = tuple[np.ndarray, ...]

_MOST_ROWS = 64
_MOST_BYTES = 1 << 20


@dataclasses.dataclass
class Failure:
    """The exception that stopped Python code inside a stream, kept until its reader asks for it."""

    error: BaseException | None = None

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep what is raised inside, and let it pass."""
        try:
            yield
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = error
            raise

    def take(self) -> BaseException | None:
        """Return the kept exception and forget it."""
        error, self.error = self.error, None
        return error


@dataclasses.dataclass(frozen=True, eq=False)
class PythonRows:
    """Rows from Python, of which each pass makes anew.

    Attributes:
        factory: Called at the start of each pass; returns the rows.
        example: One row; its dtypes and ranks hold for all, its sizes do not.
        size: How many rows a pass has: None where it is unknown, `math.inf` where it does not end.
        columns: Names of the columns, for messages.
        failure: Where an exception is left that TensorFlow would wrap.
    """

    factory: Callable[[], Iterable[Row]]
    example: Row
    size: float | None = None
    columns: tuple[str, ...] | None = None
    failure: Failure = dataclasses.field(default_factory=Failure)

    @functools.cached_property
    def specs(self) -> tuple[tf.TensorSpec, ...]:
        """What stays the same from row to row."""
        return row_specs(self.example)

    @functools.cached_property
    def dataset(self) -> tf.data.Dataset:
        """The rows as TensorFlow's own stream."""
        blocks = tuple(tf.TensorSpec([None, *spec.shape], spec.dtype) for spec in self.specs)
        dataset = tf.data.Dataset.from_generator(self.blocks, output_signature=blocks).unbatch()
        if self.size is None:
            return dataset
        count = tf.data.INFINITE_CARDINALITY if self.size == math.inf else int(self.size)
        return dataset.apply(tf.data.experimental.assert_cardinality(count))

    def rows(self) -> Iterator[Row]:
        """Yield the rows of one pass.

        Raises:
            TypeError: A row has another dtype than the example.
            ValueError: A row has another number of columns or another rank, or there are more or fewer than `size`.
        """
        count = 0
        dtypes = [np.asarray(value).dtype for value in self.example]
        for count, row in enumerate(self.factory(), start=1):  # noqa: B007
            if len(row) != len(dtypes) or any(value.dtype != dtype for value, dtype in zip(row, dtypes, strict=True)):
                self._check_dtypes(row)
            if any(value.ndim != spec.shape.rank for value, spec in zip(row, self.specs, strict=True)):
                self._fail_rank(row)
            yield row
        if self.size is not None and count != self.size:
            raise ValueError(
                f"dataset: expected {self.size} rows in an epoch, as the size that was given; got {count}. "
                "Write a source with as many rows in every epoch as its size says."
            )

    def blocks(self) -> Iterator[Row]:
        """Yield the rows stacked, 1, 2, 4, ... of the same shapes at a time, so that the first comes at once."""
        self.failure.error = None
        block: list[Row] = []
        limit = 1
        with self.failure.keeping():
            try:
                for row in self.rows():
                    if block and (len(block) >= limit or not _same_shapes(block[0], row)):
                        yield _stack(block)
                        block = []
                        limit = min(2 * limit, _limit(row))
                    block.append(row)
            except Exception:
                if block:
                    yield _stack(block)  # The rows before the one that failed.
                raise
            if block:
                yield _stack(block)

    def _check_dtypes(self, row: Row) -> None:
        if len(row) != len(self.specs):
            raise ValueError(
                f"dataset: expected {len(self.specs)} columns in every row, as in the first; got a row of {len(row)}. "
                "Write a source whose rows all have the same columns."
            )
        for index, (value, spec) in enumerate(zip(row, self.specs, strict=True)):
            if tf.as_dtype(value.dtype) != spec.dtype:
                raise TypeError(
                    f"dataset: expected {spec.dtype.name} in column {self._name(index)}, as in the first row; "
                    f"got {value.dtype.name}. Write the same dtype in every row, for example value.astype(dtype)."
                )

    def _fail_rank(self, row: Row) -> None:
        for index, (value, spec) in enumerate(zip(row, self.specs, strict=True)):
            if value.ndim != spec.shape.rank:
                raise ValueError(
                    f"dataset: expected {spec.shape.rank} dimensions in column {self._name(index)}, as in the first "
                    f"row; got shape {value.shape}. Write a source whose rows all have the same rank."
                )

    def _name(self, index: int) -> str:
        return f'"{self.columns[index]}"' if self.columns else str(index)


def row_specs(example: Sequence[np.ndarray]) -> tuple[tf.TensorSpec, ...]:
    """Return what stays the same from row to row: dtypes and ranks, not sizes."""
    return tuple(tf.TensorSpec([None] * np.ndim(value), np.asarray(value).dtype) for value in example)


def _same_shapes(first: Row, row: Row) -> bool:
    return all(one.shape == other.shape for one, other in zip(first, row, strict=True))


def _limit(row: Row) -> int:
    size = max(1, sum(value.nbytes for value in row))
    return max(1, min(_MOST_ROWS, _MOST_BYTES // size))


def _stack(block: list[Row]) -> Row:
    if len(block) == 1:
        return tuple(value[np.newaxis] for value in block[0])
    return tuple(map(np.stack, zip(*block, strict=True)))
