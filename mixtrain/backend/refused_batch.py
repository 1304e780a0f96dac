"""Batches that are refused before their step: the errors that say which batch it was."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras

from mixtrain.typing import Tree


class RefusedBatch(ValueError):
    """A batch was refused before its step.

    Args:
        message: The message.
        index: The index of the batch among those that were checked together.
    """

    def __init__(self, message: str, index: int = 0) -> None:
        super().__init__(message)
        self.index = index

    def located(self, where: str, place: str) -> RefusedBatch:
        """Return the error with the function that ran the batches, and the position of the batch in words."""
        raise NotImplementedError


class EmptyBatch(RefusedBatch):
    """A batch has no rows: its mean loss would be 0 / 0.

    Args:
        where: The function that checked it.
        shape: The shape of the first tensor of its first column, as far as it is known.
        index: The index of the batch among those that were checked together.
        place: The position of that batch in words; "" where it is unknown.
    """

    def __init__(self, where: str, shape: Sequence[int | None], index: int = 0, place: str = "") -> None:
        sizes = ", ".join("?" if size is None else str(size) for size in shape)
        super().__init__(
            f"{where}: a batch must have at least one row; got 0 rows{place}: column 0 has shape "
            f"({sizes}{',' if len(shape) == 1 else ''}). Leave empty batches out: "
            "write [batch for batch in batches if len(batch[0])].",
            index,
        )
        self.shape = shape

    def located(self, where: str, place: str) -> EmptyBatch:
        """Return the error with the function that ran the batches, and the position of the batch in words."""
        return EmptyBatch(where, self.shape, self.index, f" in {place}")


def refuse_empty(batch: Sequence[Tree], *, stacked: bool = False) -> None:
    """Refuse a batch without rows, which are those of the first tensor of its first column.

    Other columns may well be empty: boxes of all images, where there are none.

    Args:
        batch: The columns.
        stacked: Whether they are several batches, stacked on a first axis.

    Raises:
        EmptyBatch: The batch has no rows.
    """
    first: Any = batch[0] if batch else None
    shape = getattr(first, "shape", None)
    if shape is None:  # A column of several parts.
        parts = keras.tree.flatten(batch)
        shape = getattr(parts[0], "shape", ()) if parts else ()
    axis = 1 if stacked else 0
    if len(shape) > axis and shape[axis] == 0:
        raise EmptyBatch("a compiled step", tuple(shape)[axis:])


@contextlib.contextmanager
def naming_position(where: str, place: Callable[[int], str]) -> Iterator[None]:
    """Add the function that runs the batches, and the position of the batch, to a `RefusedBatch`.

    Args:
        where: The function that runs the batches.
        place: Returns the position of a batch in words, given its index among those that run inside.

    Raises:
        RefusedBatch: A batch was refused.
    """
    try:
        yield
    except RefusedBatch as error:
        raise error.located(where, place(error.index)) from None
