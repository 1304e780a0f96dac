"""JAX arrays and variables: conversions, queries and writes."""

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
from jax.experimental import multihost_utils

from mixtrain import process_group
from mixtrain.backend.jax.tracing import now
from mixtrain.backend.refused_batch import text_for_numbers, wrapping_integer
from mixtrain.backend.tensor_base import LayoutView, TensorBase, backend_value
from mixtrain.typing import BackendTensor, Tensor, TensorLike

BACKEND_TENSORS: tuple[type, ...] = (jax.Array, keras.KerasTensor)
TENSOR_TYPES: tuple[type, ...] = (TensorBase, *BACKEND_TENSORS)


def is_tensor(value: Any) -> bool:
    return isinstance(value, TENSOR_TYPES)


def is_unknown_dimension(value: Any) -> bool:
    return is_tensor(value) or jax.export.is_symbolic_dim(value)


def byte_count(value: Any) -> int:
    value = backend_value(value)
    return math.prod(value.shape) * int(np.dtype(value.dtype).itemsize)


def is_symbolic(value: Any) -> bool:
    return isinstance(backend_value(value), (jax.core.Tracer, keras.KerasTensor))


def known_value(value: Any) -> np.ndarray | None:
    value = backend_value(value)
    if isinstance(value, jax.core.Tracer):
        # A tracer of eager differentiation has a concrete value.
        value = value.to_concrete_value()
    return None if value is None or is_symbolic(value) else np.asarray(value)


def bytes_of(dtype: str) -> int:
    return int(jnp.dtype(dtype).itemsize)


def canonical_dtype(dtype: str) -> str:
    """Without JAX's 64-bit mode, 64 bits become 32."""
    return str(jax.dtypes.canonicalize_dtype(dtype).name)


@functools.lru_cache(maxsize=64)
def _narrowed(dtype: np.dtype) -> str | None:
    """Return the dtype in which an array of a dtype is stored if it differs, else None."""
    stored = canonical_dtype(dtype.name)
    return None if stored == dtype.name else stored


@functools.lru_cache(maxsize=64)
def _narrowed_integer(dtype: Any) -> np.iinfo | None:
    """Return the range of the dtype in which integers of an array library's dtype are stored if it is smaller."""
    name = str(getattr(dtype, "name", None) or dtype).rpartition(".")[2]  # "torch.int64" has no name.
    stored = canonical_dtype(name) if name in ("int64", "uint64") else name
    return None if stored == name else np.iinfo(stored)


def refuse_unstorable(value: Any) -> Any:
    if isinstance(value, TENSOR_TYPES):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "US":
        raise text_for_numbers(repr(value.flat[0].item()) if value.size else "text")
    dtype = np.dtype(np.int64) if type(value) is int else getattr(value, "dtype", None)
    limits = None if dtype is None else _narrowed_integer(dtype)
    if limits is None:
        return value
    array = np.asarray(value)
    if array.size and (array.min() < limits.min or array.max() > limits.max):
        raise wrapping_integer(int(array[(array < limits.min) | (array > limits.max)][0]), limits.dtype.name)
    return value


def to_tensor(value: Any, dtype: str | None = None) -> Tensor:
    if dtype is None and type(value) is np.ndarray:
        # With None instead of the array's own dtype JAX takes half the time.
        return jnp.asarray(value, _narrowed(value.dtype))
    if dtype is None and isinstance(value, LayoutView):
        return value
    value = backend_value(value)
    if isinstance(value, keras.Variable):
        value = value.value
    elif type(value).__name__ == "RaggedTensor":  # TensorFlow's, of a `tf.data.Dataset`: with zeros, as in Keras.
        value = value.to_tensor()
    if dtype is not None:
        dtype = canonical_dtype(dtype)
    elif isinstance(value, (np.ndarray, np.generic)):
        dtype = _narrowed(value.dtype)
    return keras.ops.convert_to_tensor(value, dtype=dtype)


def to_numpy(value: Any) -> np.ndarray:
    # A fast path, since the results of each step are read here.
    tensor = value if isinstance(value, jax.Array) else to_tensor(value)
    if tensor.dtype == jnp.bfloat16:
        tensor = tensor.astype(jnp.float32)
    if process_group.current().size > 1 and not (tensor.is_fully_addressable or tensor.is_fully_replicated):
        # Other processes hold parts of it.
        return multihost_utils.process_allgather(tensor, tiled=True)  # type: ignore[no-any-return]
    return np.array(tensor)


def snapshot(variable: keras.Variable) -> Any:
    value = variable.value
    # A copy, since a compiled step may donate the variable's own array.
    return value if is_symbolic(value) else jnp.copy(value)


def wait_for(tensors: Sequence[Tensor]) -> None:
    jax.block_until_ready(tensors)


def name_scope(name: str) -> Any:
    return jax.named_scope(name)


def double_precision() -> contextlib.AbstractContextManager[Any]:
    """JAX would use float32."""
    return jax.enable_x64(True)  # type: ignore[no-any-return]


def prunes(tensor: Tensor) -> bool:
    return isinstance(tensor, jax.core.Tracer)


def register_tensor(kind: type, make: Callable[[BackendTensor], Any]) -> None:
    """Register a pytree node with one leaf."""
    jax.tree_util.register_pytree_node(
        kind, lambda value: ((value.backend_tensor(),), None), lambda _, leaves: make(leaves[0])
    )


def truth(tensor: Tensor) -> bool:
    if now.path is None or not isinstance(tensor, jax.core.Tracer) or tensor.shape != ():
        return bool(tensor)
    return now.path.decide(tensor)


def stored(variable: keras.Variable) -> Any:
    """Return the array that a variable holds, in its stored dtype; None for one that has no value yet.

    Keras has no public way to bypass the scopes of state and autocast through which it shows values;
    tests/backend/test_storage.py fails if the name changes.
    """
    return variable._value


def store(variable: keras.Variable, value: TensorLike) -> None:
    variable._value = value
