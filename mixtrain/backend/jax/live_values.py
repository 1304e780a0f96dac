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
    """The last value that was put here by a compiled step or by Python.

    Args:
        value: A tensor with the dtype and shape of those that will be put here.

    Example:
        >>> live = LiveValue(jnp.array([1.0, 2.0]))
        >>> live.take() is None
        True
        >>> live.put(jnp.array([3.0, 4.0]))
        >>> live.take()[1].tolist()
        [3.0, 4.0]
    """

    def __init__(self, value: TensorLike) -> None:
        self._value = _slot(value.shape, keras.backend.standardize_dtype(value.dtype))
        self._time = _slot((), "int32")

    def put(self, value: TensorLike) -> None:
        """Write a value."""
        now = current(_clock()) + 1
        put(self._value, jnp.asarray(value))
        put(_clock(), now)
        put(self._time, now)

    def take(self) -> tuple[int, np.ndarray] | None:
        """Return the time (a count) and the value of the last `put` since the previous call; None without one."""
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
