"""The tensor that a Keras variable holds, written without a detour; variables that are made while a graph is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf


def store(variable: keras.Variable, value: Any) -> None:
    """Let a variable hold a tensor of its format and shape; `assign` would convert and check what is right already."""
    for copy in copies_of(variable):
        tf.raw_ops.AssignVariableOp(resource=copy.handle, value=value)


def variables_made_at_once() -> contextlib.AbstractContextManager[Any]:
    """Give variables that are made inside their values at once, where `tf.function` would wait for its first call.

    A trace that fails has no first call, and would leave them without values.
    """
    return tf.variable_creator_scope(_made_at_once)  # type: ignore[no-any-return]


def _made_at_once(next_creator: Callable[..., Any], **options: Any) -> Any:
    return next_creator(**{**options, "experimental_enable_variable_lifting": False})


def copies_of(variable: keras.Variable) -> Sequence[Any]:
    """Return what holds a variable's value: several copies, where a strategy of `tf.distribute` mirrors it."""
    value = variable.value
    return value.values if isinstance(value, tf.distribute.DistributedValues) else [value]
