"""The storage of a variable's value, which can be exchanged for one of another dtype."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from mixtrain.dtype import DType


def storage_in(variable: keras.Variable, dtype: DType) -> Any:
    """Return new storage with a variable's current value, cast.

    Args:
        variable: Any variable that has its value.
        dtype: The dtype of the storage.
    """
    with tf.init_scope():
        return tf.Variable(tf.cast(variable.value, dtype), trainable=variable.trainable, name=variable.name)


def exchange_storage(variable: keras.Variable, storage: Any) -> Any:
    """Switch a variable to other storage and its dtype; return the previous storage.

    Keras has no public way to change a variable's dtype; tests/backend/test_storage.py fails if these names change.

    Args:
        variable: The variable, which stays the same object.
        storage: A result of `storage_in` or of this function, of the same shape.
    """
    previous = variable._value
    variable._value, variable._dtype = storage, storage.dtype.name
    return previous


def read_storage(storage: Any) -> Any:
    """Return the current value of storage as a tensor, which later writes do not change."""
    return tf.identity(storage)
