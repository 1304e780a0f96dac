"""Direct access to the array of a Keras variable."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain.typing import TensorLike


def stored(variable: keras.Variable) -> Any:
    """Return the array that a variable holds, in its stored dtype; None for one that has no value yet.

    Keras has no public way to bypass the scopes of state and autocast through which it shows values;
    tests/backend/test_storage.py fails if the name changes.
    """
    return variable._value


def store(variable: keras.Variable, value: TensorLike) -> None:
    variable._value = value
