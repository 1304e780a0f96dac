"""JAX's arrays: how they are made, read and asked for what is known of them."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import keras
import numpy as np
# JAX's tracers take no attributes, so Keras keeps their masks in a table of its own, which has no public name;
# tests/backend/test_tensor.py fails if it moves.
from keras.src.backend.common.masking import get_keras_mask, set_keras_mask

from mixtrain.backend.jax.code_paths import decided
from mixtrain.backend.layout import ChannelsFirstView, channels_first
from mixtrain.backend.tensor_base import TensorBase, backend_value

BACKEND_TENSORS: tuple[type, ...] = (jax.Array, keras.KerasTensor)
TENSOR_TYPES: tuple[type, ...] = (TensorBase, *BACKEND_TENSORS)


def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor: of the backend, an object that stands for one, or Keras's symbol."""
    return isinstance(value, TENSOR_TYPES)


def is_open_size(value: Any) -> bool:
    """Whether `value` is a size, or a part of a shape, that is known only when a function runs."""
    return is_tensor(value) or jax.export.is_symbolic_dim(value)


def byte_count(value: Any) -> int:
    """Return how much memory a tensor's values take, in bytes."""
    value = backend_value(value)
    return math.prod(value.shape) * int(np.dtype(value.dtype).itemsize)


def is_symbolic(value: Any) -> bool:
    """Whether a tensor belongs to a function that is being compiled and has no values yet."""
    return isinstance(backend_value(value), (jax.core.Tracer, keras.KerasTensor))


def known_value(value: Any) -> np.ndarray | None:
    """Return a tensor's values where they are known; else None."""
    value = backend_value(value)
    if isinstance(value, jax.core.Tracer):
        # While gradients are taken outside of a compiled function, a tracer stands for an array that is there.
        value = value.to_concrete_value()
    return None if value is None or is_symbolic(value) else np.asarray(value)


def bytes_of(dtype: str) -> int:
    """Return how many bytes one number of a format takes."""
    return int(jnp.dtype(dtype).itemsize)


def held_format(dtype: str) -> str:
    """Return the format in which tensors of a format are held here: without JAX's 64-bit mode, 64 bits become 32."""
    return str(jax.dtypes.canonicalize_dtype(dtype).name)


@functools.lru_cache(maxsize=64)
def _narrowed(dtype: np.dtype) -> str | None:
    """Return the format in which an array of a dtype is held where it is another one, else None."""
    held = held_format(dtype.name)
    return None if held == dtype.name else held


def to_tensor(value: Any, dtype: str | None = None) -> Any:
    """Return `value` as a tensor, of `dtype` where it is given, as such tensors are held."""
    if dtype is None and type(value) is np.ndarray:
        # Without a dtype, where it is the array's, JAX takes half the time.
        return jnp.asarray(value, _narrowed(value.dtype))
    if dtype is None and isinstance(value, ChannelsFirstView):
        return value
    value = backend_value(value)
    if isinstance(value, keras.Variable):
        value = value.value
    if dtype is not None:
        dtype = held_format(dtype)
    elif isinstance(value, (np.ndarray, np.generic)):
        dtype = _narrowed(value.dtype)
    return keras.ops.convert_to_tensor(value, dtype=dtype)


def to_numpy(value: Any) -> np.ndarray:
    """Return a tensor's or variable's values as a NumPy array; bfloat16, which NumPy lacks, comes as float32."""
    # An array is not converted: the results of each step are read here.
    tensor = value if isinstance(value, jax.Array) else to_tensor(value)
    if tensor.dtype == jnp.bfloat16:
        tensor = tensor.astype(jnp.float32)
    return np.array(tensor)


def snapshot(variable: keras.Variable) -> Any:
    """Return a variable's present value, which later assignments leave alone."""
    value = variable.value
    # A compiled step may take the memory of a variable's own array for the next value.
    return value if is_symbolic(value) else jnp.copy(value)


def wait_for(tensors: Sequence[Any]) -> None:
    """Return when tensors have their values."""
    jax.block_until_ready(tensors)


def name_scope(name: str) -> Any:
    """Name what is computed inside after a layer, so that a compiled step can be read and profiled."""
    return jax.named_scope(name)


def double_precision() -> contextlib.AbstractContextManager[Any]:
    """Let float64 be float64 in what is computed inside, where JAX would use float32."""
    return jax.enable_x64(True)  # type: ignore[no-any-return]


def from_channels_last(tensor: Any) -> Any:
    """Return a tensor (N, H, W, C) as (N, C, H, W); while compiling, as a view that remembers it."""
    return channels_first(tensor, view=isinstance(tensor, jax.core.Tracer))


def register_tensor(kind: type, make: Callable[[Any], Any]) -> None:
    """Let a class that stands for tensors go through JAX's transformations, as a node with one leaf.

    Args:
        kind: A `TensorBase`.
        make: From what a node's leaf has become to an object of the class.
    """
    jax.tree_util.register_pytree_node(
        kind, lambda value: ((value.backend_tensor(),), None), lambda _, leaves: make(leaves[0])
    )


def truth(tensor: Any) -> bool:
    """Return what a tensor decides: its value, or in a function that is traced along all paths, what this one decides.

    Raises:
        jax.errors.TracerBoolConversionError: The tensor has no value yet, and the function is not traced along all.
    """
    return decided(tensor)


def mask_of(tensor: Any) -> Any:
    """Return the mask that Keras's layers gave a tensor and its losses read; None where there is none."""
    return get_keras_mask(backend_value(tensor))


def give_mask(tensor: Any, mask: Any) -> None:
    """Give a tensor a mask that Keras's layers and losses read."""
    set_keras_mask(backend_value(tensor), mask)
