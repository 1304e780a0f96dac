"""TensorFlow's tensors: how they are made, read and asked for what is known of them."""

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

BACKEND_TENSORS: tuple[type, ...] = (tf.Tensor, keras.KerasTensor)
TENSOR_TYPES: tuple[type, ...] = (TensorBase, *BACKEND_TENSORS)


def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor: of the backend, an object that stands for one, or Keras's symbol."""
    return isinstance(value, TENSOR_TYPES)


def is_open_size(value: Any) -> bool:
    """Whether `value` is a size, or a part of a shape, that is known only when a function runs."""
    return is_tensor(value)


def byte_count(value: Any) -> int:
    """Return how much memory a tensor's values take, in bytes."""
    value = backend_value(value)
    return math.prod(value.shape) * int(value.dtype.size)


def is_symbolic(value: Any) -> bool:
    """Whether a tensor belongs to a function that is being compiled and has no values yet."""
    return not hasattr(backend_value(value), "numpy")


def known_value(value: Any) -> np.ndarray | None:
    """Return a tensor's values where they are known, which those of constants are while compiling too; else None."""
    found = tf.get_static_value(backend_value(value))
    return None if found is None else np.asarray(found)


def bytes_of(dtype: str) -> int:
    """Return how many bytes one number of a format takes."""
    return int(tf.as_dtype(dtype).size)


def held_format(dtype: str) -> str:
    """Return the format in which tensors of a format are held here: that format."""
    return dtype


def to_tensor(value: Any, dtype: str | None = None) -> Any:
    """Return `value` as a tensor, of `dtype` where it is given."""
    if dtype is None and isinstance(value, ChannelsFirstView):
        return value
    value = backend_value(value)
    if isinstance(value, keras.Variable):
        # Keras would hand back the variable itself.
        value = tf.convert_to_tensor(value.value)
    return keras.ops.convert_to_tensor(value, dtype=dtype)


def to_numpy(value: Any) -> np.ndarray:
    """Return a tensor's or variable's values as a NumPy array; bfloat16, which NumPy lacks, comes as float32."""
    value = backend_value(value)
    tensor = value if isinstance(value, tf.Tensor) else to_tensor(value)
    if tensor.dtype == tf.bfloat16:
        tensor = tf.cast(tensor, tf.float32)
    return np.array(tensor) if isinstance(tensor, tf.Tensor) else np.asarray(keras.ops.convert_to_numpy(tensor))


def snapshot(variable: keras.Variable) -> Any:
    """Return a variable's present value, which later assignments leave alone."""
    return tf.identity(variable.value)


def wait_for(tensors: Sequence[Any]) -> None:
    """Return when tensors have their values; TensorFlow's calls on a CPU return no sooner."""
    del tensors


def name_scope(name: str) -> Any:
    """Name what is computed inside after a layer, so that a compiled step can be read and profiled."""
    # TensorFlow's names are of ASCII letters and begin with one; Python's need not.
    return tf.name_scope(re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip("_-") or "layer")


def double_precision() -> contextlib.AbstractContextManager[Any]:
    """Let float64 be float64 in what is computed inside, which it always is here."""
    return contextlib.nullcontext()


def from_channels_last(tensor: Any) -> Any:
    """Return a tensor (N, H, W, C) as (N, C, H, W); while compiling, as a view that remembers it."""
    return channels_first(tensor, view=not tf.executing_eagerly())


def truth(tensor: Any) -> bool:
    """Return what a tensor decides: its value.

    Raises:
        tf.errors.OperatorNotAllowedInGraphError: The tensor belongs to a function that is being compiled.
    """
    return bool(tensor)


def register_tensor(kind: type, make: Callable[[Any], Any]) -> None:
    """Do nothing: TensorFlow reads a class that stands for tensors by its protocols.

    Args:
        kind: A `TensorBase`.
        make: From a backend tensor to an object of the class.
    """


def mask_of(tensor: Any) -> Any:
    """Return the mask that Keras's layers gave a tensor and its losses read; None where there is none."""
    return getattr(backend_value(tensor), "_keras_mask", None)


def give_mask(tensor: Any, mask: Any) -> None:
    """Give a tensor a mask that Keras's layers and losses read."""
    backend_value(tensor)._keras_mask = mask
