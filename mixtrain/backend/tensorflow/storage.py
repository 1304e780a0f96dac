"""Where a variable keeps its value: in another number format, and exchanged for a while."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from mixtrain.dtype import DType


def storage_in(variable: keras.Variable, dtype: DType) -> Any:
    """Return new storage with a variable's present value, cast.

    Args:
        variable: Any variable that has its value.
        dtype: The number format to keep it in.
    """
    with tf.init_scope():
        return tf.Variable(tf.cast(variable.value, dtype), trainable=variable.trainable, name=variable.name)


def exchange_storage(variable: keras.Variable, storage: Any) -> Any:
    """Let a variable keep its value in other storage, and in that one's format, from now on; return what it had.

    Keras has no public way to change a variable's format; tests/backend/test_storage.py fails if these names move.

    Args:
        variable: The variable; whoever holds it goes on holding it.
        storage: What `storage_in` or this function returned, of the same shape.
    """
    before = variable._value
    variable._value, variable._dtype = storage, storage.dtype.name
    return before


def read_storage(storage: Any) -> Any:
    """Return the present value of storage as a tensor, which later writes leave alone."""
    return tf.identity(storage)
