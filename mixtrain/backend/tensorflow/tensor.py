"""TensorFlow tensors: conversions and queries."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from mixtrain.backend.layout import ChannelsFirstView, channels_first
from mixtrain.backend.tensor_base import TensorBase, backend_value
from mixtrain.typing import BackendTensor, Tensor

BACKEND_TENSORS: tuple[type, ...] = (tf.Tensor, keras.KerasTensor)
TENSOR_TYPES: tuple[type, ...] = (TensorBase, *BACKEND_TENSORS)


def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor of the backend, a `TensorBase` or a `KerasTensor`."""
    return isinstance(value, TENSOR_TYPES)


def is_unknown_dimension(value: Any) -> bool:
    """Whether `value` is an unknown dimension, or another size that is only known at run time."""
    return is_tensor(value)


def byte_count(value: Any) -> int:
    """Return the size of a tensor's values in bytes."""
    value = backend_value(value)
    return math.prod(value.shape) * int(value.dtype.size)


def is_symbolic(value: Any) -> bool:
    """Whether a tensor belongs to a traced function and has no values."""
    return not hasattr(backend_value(value), "numpy")


def known_value(value: Any) -> np.ndarray | None:
    """Return a tensor's values if they are known, as those of constants in a trace are, else None."""
    value = backend_value(value)
    values = None if isinstance(value, keras.KerasTensor) else tf.get_static_value(value)
    return None if values is None else np.asarray(values)


def bytes_of(dtype: str) -> int:
    """Return the item size of a dtype in bytes."""
    return int(tf.as_dtype(dtype).size)


def canonical_dtype(dtype: str) -> str:
    """Return the dtype in which tensors of a dtype are stored: the same one."""
    return dtype


def refuse_unstorable(value: Any) -> Any:
    """Return an array or number as it is: integers and text are stored as themselves."""
    return value


def to_tensor(value: Any, dtype: str | None = None) -> Tensor:
    """Convert `value` to a tensor, of `dtype` if given."""
    if dtype is None and isinstance(value, ChannelsFirstView):
        return value
    value = backend_value(value)
    if isinstance(value, keras.Variable):
        # Keras would return the variable itself.
        value = tf.convert_to_tensor(value.value)
    return keras.ops.convert_to_tensor(value, dtype=dtype)


def to_numpy(value: Any) -> np.ndarray:
    """Return the values of a tensor or variable as a NumPy array, bfloat16, which NumPy lacks, as float32."""
    value = backend_value(value)
    tensor = value if isinstance(value, tf.Tensor) else to_tensor(value)
    if tensor.dtype == tf.bfloat16:
        tensor = tf.cast(tensor, tf.float32)
    return np.array(tensor) if isinstance(tensor, tf.Tensor) else np.asarray(keras.ops.convert_to_numpy(tensor))


def snapshot(variable: keras.Variable) -> Any:
    """Return a variable's current value, which later assignments do not change."""
    return tf.identity(variable.value)


def wait_for(tensors: Sequence[Tensor]) -> None:
    """Wait until tensors are computed: TensorFlow's calls on a CPU already do."""
    del tensors


def name_scope(name: str) -> Any:
    """Name operations after a layer, for graphs and profiles of a compiled step."""
    # TensorFlow's names must be ASCII and begin with a letter or digit; Python's need not.
    return tf.name_scope(re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip("_-") or "layer")


def double_precision() -> contextlib.AbstractContextManager[Any]:
    """Enable float64 in the code inside: it always is on TensorFlow."""
    return contextlib.nullcontext()


def from_channels_last(tensor: Tensor) -> Tensor:
    """Return a tensor (N, H, W, C) as (N, C, H, W); in a trace, as a view that keeps the channels-last tensor."""
    return channels_first(tensor, view=not tf.executing_eagerly())


def truth(tensor: Tensor) -> bool:
    """Return the outcome of a branch: a tensor's value.

    Raises:
        tf.errors.OperatorNotAllowedInGraphError: The tensor belongs to a traced function.
    """
    return bool(tensor)


def register_tensor(kind: type, make: Callable[[BackendTensor], Any]) -> None:
    """Do nothing: TensorFlow supports `TensorBase` by its protocols.

    Args:
        kind: A subclass of `TensorBase`.
        make: Creates an object of the class from a backend tensor.
    """


def mask_of(tensor: Tensor) -> Tensor | None:
    """Return the Keras mask of a tensor; None without one."""
    return getattr(backend_value(tensor), "_keras_mask", None)


def set_mask(tensor: Tensor, mask: Tensor | None) -> None:
    """Set the Keras mask of a tensor."""
    backend_value(tensor)._keras_mask = mask
