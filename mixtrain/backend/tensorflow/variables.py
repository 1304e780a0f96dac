"""Direct writes to Keras variables, and the creation of variables in graphs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from mixtrain.typing import TensorLike


def store(variable: keras.Variable, value: TensorLike) -> None:
    for copy in copies_of(variable):
        tf.raw_ops.AssignVariableOp(resource=copy.handle, value=value)


def initializing_eagerly() -> contextlib.AbstractContextManager[Any]:
    """Initialize variables that are created inside at once; `tf.function` would wait for its first call.

    A failed trace has no first call and would leave them uninitialized.
    """
    return tf.variable_creator_scope(_without_lifting)  # type: ignore[no-any-return]


def _without_lifting(next_creator: Callable[..., Any], **options: Any) -> Any:
    return next_creator(**{**options, "experimental_enable_variable_lifting": False})


def copies_of(variable: keras.Variable) -> Sequence[Any]:
    """Return the TensorFlow variables of a Keras variable: several if a strategy of `tf.distribute` mirrors it."""
    value = variable.value
    return value.values if isinstance(value, tf.distribute.DistributedValues) else [value]
