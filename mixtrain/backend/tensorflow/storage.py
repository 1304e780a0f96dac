"""The storage of a variable's value, which can be exchanged for one of another dtype."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from mixtrain.dtype import DType


def storage_in(variable: keras.Variable, dtype: DType) -> Any:
    with tf.init_scope():
        return tf.Variable(tf.cast(variable.value, dtype), trainable=variable.trainable, name=variable.name)


def exchange_storage(variable: keras.Variable, storage: Any) -> Any:
    # Keras has no public way to change a variable's dtype; tests/backend/test_storage.py fails if these names change.
    previous = variable._value
    variable._value, variable._dtype = storage, storage.dtype.name
    return previous


def read_storage(storage: Any) -> Any:
    return tf.identity(storage)
