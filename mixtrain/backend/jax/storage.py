"""Other storage of a variable's value, and values that a compiled step writes and Python reads afterwards."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from mixtrain.backend.jax.state import current, outside_scopes, put
from mixtrain.backend.jax.tensor import store, stored
from mixtrain.backend.tensor_base import backend_value
from mixtrain.dtype import DType
from mixtrain.typing import Tensor, TensorLike


def is_mirrored(variable: keras.Variable) -> bool:
    return False


def layout_of(variable: keras.Variable) -> Sequence[Any]:
    """Return for each dimension of a variable the axes of a mesh that it is divided over; nothing without a mesh."""
    return getattr(getattr(stored(variable), "sharding", None), "spec", ())  # type: ignore[no-any-return]


def sharding_axes(variable: keras.Variable) -> list[str]:
    return [axis for axes in layout_of(variable) for axis in ((axes,) if isinstance(axes, str) else axes or ())]


def spans_processes(value: Any) -> bool:
    array = stored(value) if isinstance(value, keras.Variable) else backend_value(value)
    return not getattr(array, "is_fully_addressable", True)


def own_pieces(value: Any) -> list[tuple[tuple[int, ...], Tensor]]:
    array = stored(value) if isinstance(value, keras.Variable) else backend_value(value)
    return [
        (tuple(axis.start or 0 for axis in shard.index), shard.data)
        for shard in array.addressable_shards if shard.replica_id == 0
    ]


def storage_in(variable: keras.Variable, dtype: DType) -> Any:
    with outside_scopes():
        value = jnp.asarray(current(variable)).astype(dtype)
        return keras.Variable(value, trainable=variable.trainable, dtype=dtype.name, autocast=False, name="storage")


@dataclasses.dataclass(frozen=True)
class _Temporary:
    """A value of a variable, and its dtype."""

    value: Any
    dtype: str


def temporary_storage(variable: keras.Variable, value: Tensor) -> Any:
    return _Temporary(value, value.dtype.name)


def exchange_storage(variable: keras.Variable, storage: Any) -> Any:
    if isinstance(storage, _Temporary):
        previous = _Temporary(current(variable), variable._dtype)
        variable._dtype = storage.dtype
        put(variable, storage.value)
        return previous
    # Storage is a variable too, so that a compiled call passes its value like any other. The two swap values and
    # dtypes. Keras has no public way to change a variable's dtype; tests/backend/test_storage.py fails if the name
    # changes.
    value, stored_value = current(variable), current(storage)
    variable._dtype, storage._dtype = storage._dtype, variable._dtype
    put(variable, stored_value)
    put(storage, value)
    return storage


def read_storage(storage: Any) -> Any:
    value = storage.value if isinstance(storage, _Temporary) else current(storage)
    return value if isinstance(value, jax.core.Tracer) else jnp.copy(value)


class LiveValue:
    def __init__(self, value: TensorLike) -> None:
        self._value = _slot(value.shape, keras.backend.standardize_dtype(value.dtype))
        self._time = _slot((), "int32")

    def put(self, value: TensorLike) -> None:
        now = current(_clock()) + 1
        put(self._value, jnp.asarray(value))
        put(_clock(), now)
        put(self._time, now)

    def take(self) -> tuple[int, np.ndarray] | None:
        time = int(stored(self._time))
        if not time:
            return None
        store(self._time, jnp.zeros((), jnp.int32))
        value = stored(self._value)
        return time, np.array(value.astype(jnp.float32) if value.dtype == jnp.bfloat16 else value)


@functools.cache
def _clock() -> keras.Variable:
    """Return the count of all values that were put in this process."""
    return _slot((), "int32")


class _Slot(keras.Variable):
    """A variable of a `LiveValue`."""


def is_live(variable: keras.Variable) -> bool:
    """Whether a variable belongs to a `LiveValue`, and is not part of a network's state."""
    return isinstance(variable, _Slot)


def _slot(shape: Any, dtype: str) -> keras.Variable:
    """Create a variable outside of the function that is being traced."""
    with outside_scopes():
        return _Slot(np.zeros(shape), dtype=dtype, trainable=False, autocast=False, name="held")
