"""Values that a compiled step writes besides its results, and Python reads afterwards."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import keras
import numpy as np

from mixtrain.backend.jax.state import current, outside_scopes, put
from mixtrain.backend.jax.variables import store, stored
from mixtrain.typing import TensorLike


class LiveValue:
    def __init__(self, value: TensorLike) -> None:
        self._value = _slot(value.shape, keras.backend.standardize_dtype(value.dtype))
        self._time = _slot((), "int32")

    def put(self, value: TensorLike) -> None:
        now = current(_clock()) + 1
        put(self._value, jnp.asarray(value))
        put(_clock(), now)
        put(self._time, now)

    def take(self) -> tuple[int, np.ndarray] | None:
        time = int(stored(self._time))
        if not time:
            return None
        store(self._time, jnp.zeros((), jnp.int32))
        value = stored(self._value)
        return time, np.array(value.astype(jnp.float32) if value.dtype == jnp.bfloat16 else value)


@functools.cache
def _clock() -> keras.Variable:
    """Return the count of all values that were put in this process."""
    return _slot((), "int32")


class _Slot(keras.Variable):
    """A variable of a `LiveValue`."""


def is_live(variable: keras.Variable) -> bool:
    """Whether a variable belongs to a `LiveValue`, and is not part of a network's state."""
    return isinstance(variable, _Slot)


def _slot(shape: Any, dtype: str) -> keras.Variable:
    """Create a variable outside of the function that is being traced."""
    with outside_scopes():
        return _Slot(np.zeros(shape), dtype=dtype, trainable=False, autocast=False, name="held")
