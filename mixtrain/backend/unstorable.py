"""Values of a batch that the backend cannot store as they are."""

from __future__ import annotations

import numpy as np


class Unstorable(ValueError):
    """A column of a batch has values that the backend cannot store as they are.

    Args:
        expected: What the column must hold.
        got: A value, in words.
        write: What to write instead.
        column: The column, in words.
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
