"""Where a variable keeps its value: in another number format, and exchanged for a while."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import keras

from mixtrain.backend.jax.state import current, outside_scopes, put
from mixtrain.dtype import DType


def storage_in(variable: keras.Variable, dtype: DType) -> Any:
    """Return new storage with a variable's present value, cast.

    Args:
        variable: Any variable that has its value.
        dtype: The number format to keep it in.
    """
    with outside_scopes():
        value = jnp.asarray(current(variable)).astype(dtype)
        return keras.Variable(value, trainable=variable.trainable, dtype=dtype.name, autocast=False, name="storage")


def exchange_storage(variable: keras.Variable, storage: Any) -> Any:
    """Let a variable keep its value in other storage, and in that one's format, from now on; return what it had.

    Storage is a variable too, so that a compiled call hands over its value as any other's. The two change places.
    Keras has no public way to change a variable's format; tests/backend/test_storage.py fails if the name moves.

    Args:
        variable: The variable; whoever holds it goes on holding it.
        storage: What `storage_in` or this function returned, of the same shape.
    """
    before, after = current(variable), current(storage)
    variable._dtype, storage._dtype = storage._dtype, variable._dtype
    put(variable, after)
    put(storage, before)
    return storage


def read_storage(storage: Any) -> Any:
    """Return the present value of storage as a tensor, which later writes leave alone."""
    value = current(storage)
    return value if isinstance(value, jax.core.Tracer) else jnp.copy(value)
