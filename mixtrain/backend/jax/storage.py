"""The storage of a variable's value, which can be exchanged for one of another dtype."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import keras

from mixtrain.backend.jax.state import current, outside_scopes, put
from mixtrain.dtype import DType


def storage_in(variable: keras.Variable, dtype: DType) -> Any:
    with outside_scopes():
        value = jnp.asarray(current(variable)).astype(dtype)
        return keras.Variable(value, trainable=variable.trainable, dtype=dtype.name, autocast=False, name="storage")


def exchange_storage(variable: keras.Variable, storage: Any) -> Any:
    # Storage is a variable too, so that a compiled call passes its value like any other. The two swap values and
    # dtypes. Keras has no public way to change a variable's dtype; tests/backend/test_storage.py fails if the name
    # changes.
    value, stored_value = current(variable), current(storage)
    variable._dtype, storage._dtype = storage._dtype, variable._dtype
    put(variable, stored_value)
    put(storage, value)
    return storage


def read_storage(storage: Any) -> Any:
    value = current(storage)
    return value if isinstance(value, jax.core.Tracer) else jnp.copy(value)
