"""The tensor that a Keras variable holds, written without a detour; variables that are made while a graph is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf


def store(variable: keras.Variable, value: Any) -> None:
    """Let a variable hold a tensor of its format and shape; `assign` would convert and check what is right already."""
    tf.raw_ops.AssignVariableOp(resource=variable.value.handle, value=value)


def variables_made_at_once() -> contextlib.AbstractContextManager[Any]:
    """Give variables that are made inside their values at once, where `tf.function` would wait for its first call.

    A trace that fails has no first call, and would leave them without values.
    """
    return tf.variable_creator_scope(_made_at_once)  # type: ignore[no-any-return]


def _made_at_once(next_creator: Callable[..., Any], **options: Any) -> Any:
    return next_creator(**{**options, "experimental_enable_variable_lifting": False})
