"""TensorFlow tensors and variables: conversions, queries and writes."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from mixtrain.backend.tensor_base import LayoutView, TensorBase, backend_value
from mixtrain.typing import BackendTensor, Tensor, TensorLike

BACKEND_TENSORS: tuple[type, ...] = (tf.Tensor, keras.KerasTensor)
TENSOR_TYPES: tuple[type, ...] = (TensorBase, *BACKEND_TENSORS)


def is_tensor(value: Any) -> bool:
    return isinstance(value, TENSOR_TYPES)


def is_unknown_dimension(value: Any) -> bool:
    return is_tensor(value)


def byte_count(value: Any) -> int:
    value = backend_value(value)
    return math.prod(value.shape) * int(value.dtype.size)


def is_symbolic(value: Any) -> bool:
    return not hasattr(backend_value(value), "numpy")


def known_value(value: Any) -> np.ndarray | None:
    value = backend_value(value)
    values = None if isinstance(value, keras.KerasTensor) else tf.get_static_value(value)
    return None if values is None else np.asarray(values)


def bytes_of(dtype: str) -> int:
    return int(tf.as_dtype(dtype).size)


def canonical_dtype(dtype: str) -> str:
    return dtype


def refuse_unstorable(value: Any) -> Any:
    """Integers and text are stored as themselves."""
    return value


def to_tensor(value: Any, dtype: str | None = None) -> Tensor:
    if dtype is None and isinstance(value, LayoutView):
        return value
    value = backend_value(value)
    if isinstance(value, keras.Variable):
        # Keras would return the variable itself.
        value = tf.convert_to_tensor(value.value)
    return keras.ops.convert_to_tensor(value, dtype=dtype)


def to_numpy(value: Any) -> np.ndarray:
    value = backend_value(value)
    tensor = value if isinstance(value, tf.Tensor) else to_tensor(value)
    if tensor.dtype == tf.bfloat16:
        tensor = tf.cast(tensor, tf.float32)
    return np.array(tensor) if isinstance(tensor, tf.Tensor) else np.asarray(keras.ops.convert_to_numpy(tensor))


def snapshot(variable: keras.Variable) -> Any:
    return tf.identity(variable.value)


def wait_for(tensors: Sequence[Tensor]) -> None:
    """TensorFlow's calls on a CPU already do."""
    del tensors


def name_scope(name: str) -> Any:
    # TensorFlow's names must be ASCII and begin with a letter or digit; Python's need not.
    return tf.name_scope(re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip("_-") or "layer")


def double_precision() -> contextlib.AbstractContextManager[Any]:
    """It always is on TensorFlow."""
    return contextlib.nullcontext()


def prunes(tensor: Tensor) -> bool:
    return not tf.executing_eagerly()


def truth(tensor: Tensor) -> bool:
    return bool(tensor)


def register_tensor(kind: type, make: Callable[[BackendTensor], Any]) -> None:
    """Do nothing: TensorFlow supports `TensorBase` by its protocols."""


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
