"""The array that a Keras variable holds, whatever is being traced."""

from __future__ import annotations

from typing import Any

import keras


def stored(variable: keras.Variable) -> Any:
    """Return the array that a variable holds, in its stored format; None for one that has no value yet.

    Keras shows a variable's value through scopes of state and of casts, which this must look behind; it has no public
    way. tests/backend/test_storage.py fails if the name moves.
    """
    return variable._value


def store(variable: keras.Variable, value: Any) -> None:
    """Let a variable hold an array of its format and shape; `assign` would convert and check what is right already."""
    variable._value = value
