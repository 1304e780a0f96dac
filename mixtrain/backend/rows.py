"""Rows that Python code makes: what must hold for each of them, and the exception that stopped the code."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator

import numpy as np

Row = tuple[np.ndarray, ...]


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

    def raise_kept(self) -> None:
        """Raise the kept exception, if there is one, and forget it."""
        error, self.error = self.error, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # It knows this frame, which would know it: both would stay, with the stream, until collected.


@dataclasses.dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows from Python, of which each pass makes anew.

    Attributes:
        factory: Called at the start of each pass; returns the rows.
        example: One row; its dtypes and ranks hold for all, its sizes do not.
        size: How many rows a pass has: None where it is unknown, `math.inf` where it does not end.
        columns: Names of the columns, for messages.
        failure: Where an exception is left that the backend would wrap.
    """

    factory: Callable[[], Iterable[Row]]
    example: Row
    size: float | None = None
    columns: tuple[str, ...] | None = None
    failure: Failure = dataclasses.field(default_factory=Failure)

    def rows(self) -> Iterator[Row]:
        """Yield the rows of one pass.

        Raises:
            TypeError: A row has another dtype than the example.
            ValueError: A row has another number of columns or another rank, or there are more or fewer than `size`.
        """
        count = 0
        kinds = [(np.asarray(value).dtype, np.ndim(value)) for value in self.example]
        for count, row in enumerate(self.factory(), start=1):  # noqa: B007
            if [(value.dtype, value.ndim) for value in row] != kinds:
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
    """Return the name of an array's dtype, the same one for text of any length."""
    dtype = np.asarray(value).dtype
    return "string" if dtype.kind in "USO" else dtype.name


def shapes_of(row: Row) -> list[tuple[int, ...]]:
    """Return the shapes of a row's columns; rows that have the same can be stacked."""
    return [value.shape for value in row]
