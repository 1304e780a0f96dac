"""Rows made by Python code: their checks, and the exception that stopped the code."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

Row = tuple[np.ndarray, ...]


@dataclasses.dataclass
class Failure:
    """The exception that stopped Python code inside a stream, stored for its reader."""

    error: BaseException | None = None

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        """Store an exception of the code inside, and let it propagate."""
        try:
            yield
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = error
            raise

    def raise_kept(self) -> None:
        """Raise the stored exception, if there is one, and clear it."""
        error, self.error = self.error, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # Its traceback refers to this frame: a cycle would keep the stream alive until collected.


@dataclasses.dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows from Python, which each pass makes anew.

    Attributes:
        factory: Called at the start of each pass; returns the rows.
        example: One row; all rows have its dtypes and ranks, but not its sizes.
        size: Number of rows of a pass: None where it is unknown, `math.inf` where it does not end.
        columns: Names of the columns, for messages.
        failure: Stores an exception that the backend would wrap.
    """

    factory: Callable[[], Iterable[Row]]
    example: Row
    size: float | None = None
    columns: tuple[str, ...] | None = None
    failure: Failure = dataclasses.field(default_factory=Failure)

    def rows(self) -> Iterator[Row]:
        """Yield the rows of one pass.

        Raises: TypeError if a row has another dtype than the example. ValueError if a row has another number of columns
        or another rank, or there are more or fewer than `size`.
        """
        count = 0
        specs = [(np.asarray(value).dtype, np.ndim(value)) for value in self.example]
        for count, row in enumerate(self.factory(), start=1):  # noqa: B007
            if [(value.dtype, value.ndim) for value in row] != specs:
                self._check(row)
            yield row
        if self.size is not None and count != self.size:
            raise ValueError(
                f"dataset: expected {self.size} rows in an epoch, as the size that was given; got {count}. "
                "Write a source with as many rows in every epoch as its size says."
            )

    def _check(self, row: Row) -> None:
        if len(row) != len(self.example):
            raise ValueError(
                f"dataset: expected {len(self.example)} columns in every row, as in the first; got a row of "
                f"{len(row)}. Write a source whose rows all have the same columns."
            )
        for index, (value, first) in enumerate(zip(row, self.example, strict=True)):
            if format_name(value) != format_name(first):
                raise TypeError(
                    f"dataset: expected {format_name(first)} in column {self._name(index)}, as in the first row; "
                    f"got {format_name(value)}. Write the same dtype in every row, for example value.astype(dtype)."
                )
        for index, (value, first) in enumerate(zip(row, self.example, strict=True)):
            if value.ndim != np.ndim(first):
                raise ValueError(
                    f"dataset: expected {np.ndim(first)} dimensions in column {self._name(index)}, as in the first "
                    f"row; got shape {value.shape}. Write a source whose rows all have the same rank."
                )

    def _name(self, index: int) -> str:
        return f'"{self.columns[index]}"' if self.columns else str(index)


def format_name(value: np.ndarray) -> str:
    """Return the name of an array's dtype, "string" for text of any length."""
    dtype = np.asarray(value).dtype
    return "string" if dtype.kind in "USO" else dtype.name


def shapes_of(row: Row) -> list[tuple[int, ...]]:
    """Return the shapes of a row's columns; rows of the same shapes can be stacked."""
    return [value.shape for value in row]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a tuple or list as a tuple, and another value as a tuple of one."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
