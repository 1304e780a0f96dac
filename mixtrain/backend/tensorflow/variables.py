"""The tensor that a Keras variable holds, written without a detour."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


def store(variable: keras.Variable, value: Any) -> None:
    """Let a variable hold a tensor of its format and shape; `assign` would convert and check what is right already."""
    tf.raw_ops.AssignVariableOp(resource=variable.value.handle, value=value)
