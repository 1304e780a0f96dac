"""Values that leave a compiled step by the side: a compiled call writes them, Python reads them afterwards."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import keras
import numpy as np

from mixtrain.backend.jax.state import current, outside_scopes, put
from mixtrain.backend.jax.variables import store, stored


class LiveValue:
    """The last value that was put here, in a compiled step or from Python.

    Args:
        value: A tensor of the kind that will be put here: its dtype and shape.

    Example:
        >>> held = LiveValue(jnp.array([1.0, 2.0]))
        >>> held.take() is None
        True
        >>> held.put(jnp.array([3.0, 4.0]))
        >>> held.take()[1].tolist()
        [3.0, 4.0]
    """

    def __init__(self, value: Any) -> None:
        self._value = _slot(value.shape, keras.backend.standardize_dtype(value.dtype))
        self._moment = _slot((), "int32")

    def put(self, value: Any) -> None:
        """Keep a value."""
        now = current(_clock()) + 1
        put(self._value, jnp.asarray(value))
        put(_clock(), now)
        put(self._moment, now)

    def take(self) -> tuple[int, np.ndarray] | None:
        """Return when a value was put since the last time, as a number that grows, and the value; None without one."""
        moment = int(stored(self._moment))
        if not moment:
            return None
        store(self._moment, jnp.zeros((), jnp.int32))
        value = stored(self._value)
        return moment, np.array(value.astype(jnp.float32) if value.dtype == jnp.bfloat16 else value)


@functools.cache
def _clock() -> keras.Variable:
    """Return where the count of all values put so far is kept."""
    return _slot((), "int32")


class _Slot(keras.Variable):
    """A place for a value."""


def is_live(variable: keras.Variable) -> bool:
    """Whether a variable is a place of a value that leaves a step, not a part of a network's state."""
    return isinstance(variable, _Slot)


def _slot(shape: Any, dtype: str) -> keras.Variable:
    """Return a new place for a value, outside of the function that is being traced."""
    with outside_scopes():
        return _Slot(np.zeros(shape), dtype=dtype, trainable=False, autocast=False, name="held")
