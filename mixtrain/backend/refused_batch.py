"""Batches that are refused before their step: the errors that say which batch it was."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain.typing import Tree


class RefusedBatch(ValueError):
    """A batch was refused before its step.

    `reason`: What was expected, and what came in the batch, for whose position ``{}`` stands. `where`: The function
    that checked it. `index`: The index of the batch among those that were checked together.
    """

    def __init__(self, reason: str, where: str, index: int = 0) -> None:
        super().__init__(f"{where}: {reason.format('')}")
        self._reason, self.index = reason, index

    def located(self, where: str, place: str) -> RefusedBatch:
        """Return the error with the function that ran the batches, and the position of the batch in words."""
        self.args = (f"{where}: {self._reason.format(f' in {place}')}",)
        return self.with_traceback(None)


class EmptyBatch(RefusedBatch):
    """A batch has no rows: its mean loss would be 0 / 0.

    `shape`: The shape of the first tensor of its first column, as far as it is known.
    """

    def __init__(self, where: str, shape: Sequence[int | None], index: int = 0) -> None:
        sizes = ", ".join("?" if size is None else str(size) for size in shape)
        super().__init__(
            f"a batch must have at least one row; got 0 rows{{}}: column 0 has shape "
            f"({sizes}{',' if len(shape) == 1 else ''}). Leave empty batches out: "
            "write [batch for batch in batches if len(batch[0])].",
            where, index,
        )


def refuse_empty(batch: Sequence[Tree], *, stacked: bool = False) -> int:
    """Return the number of rows of a batch, which are those of the first tensor of its first column; 1 for scalars.

    Other columns may well be empty: boxes of all images, where there are none. `stacked`: Whether they are several
    batches, stacked on a first axis.

    Raises: EmptyBatch if the batch has no rows.
    """
    first: Any = batch[0] if batch else None
    shape = getattr(first, "shape", None)
    if shape is None:  # A column of several parts.
        parts = keras.tree.flatten(batch)
        shape = getattr(parts[0], "shape", ()) if parts else ()
    axis = 1 if stacked else 0
    rows = shape[axis] if len(shape) > axis else 1
    if rows == 0:
        raise EmptyBatch("a compiled step", tuple(shape)[axis:])
    return rows


@contextlib.contextmanager
def naming_position(where: str, place: Callable[[int], str]) -> Iterator[None]:
    """Add the function that runs the batches, and the position of the batch, to a `RefusedBatch`.

    `place`: Returns the position of a batch in words, given its index among those that run inside.
    """
    try:
        yield
    except RefusedBatch as error:
        raise error.located(where, place(error.index)) from None


class Unstorable(ValueError):
    """A column of a batch has values that the backend cannot store as they are.

    `expected`: What the column must hold. `got`: A value, in words. `write`: What to write instead. `column`: The
    column, in words.
    """

    def __init__(self, expected: str, got: str, write: str, column: str = "a column") -> None:
        super().__init__(f"Model: {column} of a batch must hold {expected}; got {got}. Write {write}.")
        self._parts = expected, got, write

    def of(self, column: str) -> Unstorable:
        """Return the error with the column of the batch, in words."""
        return Unstorable(*self._parts, column)


def wrapping_integer(value: int, dtype: str) -> Unstorable:
    """Return the error for an integer that would wrap around in the dtype in which the backend stores it."""
    limits = np.iinfo(dtype)
    return Unstorable(
        f"integers from {limits.min} to {limits.max}, as they are stored in {dtype}", str(value),
        "class numbers for labels, ids % size for the indices of a table of that size, float32 for features, or a "
        "dataset without the column if the network does not use it",
    )


def text_for_numbers(text: str) -> Unstorable:
    """Return the error for text where numbers are needed."""
    return Unstorable(
        "numbers", text,
        "class numbers for labels, np.unique(labels, return_inverse=True)[1], or keras.layers.StringLookup before "
        "training, in dataset.map",
    )
