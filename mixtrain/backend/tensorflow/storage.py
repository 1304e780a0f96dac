"""Other storage of a variable's value, and values that a compiled step writes and Python reads afterwards."""

from __future__ import annotations

import functools
import itertools
import weakref
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from mixtrain.dtype import DType
from mixtrain.typing import Tensor, TensorLike

_numbers = itertools.count()
# The resources of all slots that are alive.
_slots: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def is_mirrored(variable: keras.Variable) -> bool:
    return isinstance(variable.value, tf.distribute.DistributedValues)


def spans_processes(value: Any) -> bool:
    del value
    return False


def own_pieces(value: Any) -> list[tuple[tuple[int, ...], Tensor]]:
    return [((0,) * len(value.shape), value)]


def sharding_axes(variable: keras.Variable) -> list[str]:
    return []


def storage_in(variable: keras.Variable, dtype: DType) -> Any:
    with tf.init_scope():
        storage = tf.Variable(tf.cast(variable.value, dtype), trainable=variable.trainable, name=variable.name)
    # By this name Keras's optimizers find the slots of a variable; tests/backend/test_storage.py fails if it changes.
    storage._unique_id = variable.value._unique_id
    return storage


class _Temporary:
    """A tensor with what optimizers use of a `tf.Variable`: a write replaces it, in the graph or branch that is open.

    The value of a real variable would stay in memory between two steps.
    """

    def __init__(self, variable: keras.Variable, value: Tensor) -> None:
        self._tensor = value
        self.name, self.trainable, self._unique_id = variable.name, variable.trainable, variable.value._unique_id

    @property
    def dtype(self) -> Any:
        return self._tensor.dtype

    @property
    def shape(self) -> Any:
        return self._tensor.shape

    @property
    def device(self) -> str:
        return str(self._tensor.device)

    def value(self) -> Tensor:
        return self._tensor

    read_value = value

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        return self._tensor if dtype is None else tf.cast(self._tensor, dtype)

    def assign(self, value: TensorLike, *_: Any, **__: Any) -> Any:
        self._tensor = tf.ensure_shape(tf.convert_to_tensor(value, self.dtype), self.shape)
        return self

    def assign_add(self, value: TensorLike, *_: Any, **__: Any) -> Any:
        return self.assign(self._tensor + value)

    def assign_sub(self, value: TensorLike, *_: Any, **__: Any) -> Any:
        return self.assign(self._tensor - value)

    def scatter_update(self, rows: tf.IndexedSlices, *_: Any, **__: Any) -> Any:
        return self.assign(tf.tensor_scatter_nd_update(self._tensor, rows.indices[:, None], rows.values))

    def scatter_add(self, rows: tf.IndexedSlices, *_: Any, **__: Any) -> Any:
        return self.assign(tf.tensor_scatter_nd_add(self._tensor, rows.indices[:, None], rows.values))

    def scatter_sub(self, rows: tf.IndexedSlices, *_: Any, **__: Any) -> Any:
        return self.assign(tf.tensor_scatter_nd_sub(self._tensor, rows.indices[:, None], rows.values))

    def __mul__(self, other: TensorLike) -> Tensor:  # Keras's decay of weights.
        return self._tensor * other


def temporary_storage(variable: keras.Variable, value: Tensor) -> Any:
    return _Temporary(variable, value)


def exchange_storage(variable: keras.Variable, storage: Any) -> Any:
    # Keras has no public way to change a variable's dtype; tests/backend/test_storage.py fails if these names change.
    previous = variable._value
    variable._value, variable._dtype = storage, storage.dtype.name
    return previous


def read_storage(storage: Any) -> Any:
    return tf.identity(storage)


class LiveValue:
    def __init__(self, value: TensorLike) -> None:
        self._dtype = value.dtype
        # Uninitialized: XLA refuses to change the size of a resource that has a value.
        self._value = _slot(value.dtype, value.shape)
        self._time = _slot(tf.int64, ())

    def put(self, value: TensorLike) -> None:
        tf.raw_ops.AssignVariableOp(resource=self._value, value=value)
        tf.raw_ops.AssignAddVariableOp(resource=_clock(), value=tf.constant(1, tf.int64))
        tf.raw_ops.AssignVariableOp(resource=self._time, value=_read(_clock(), tf.int64))

    def take(self) -> tuple[int, np.ndarray] | None:
        if not bool(tf.raw_ops.VarIsInitializedOp(resource=self._value)):
            return None
        value = _read(self._value, self._dtype)
        tf.raw_ops.DestroyResourceOp(resource=self._value)
        value = tf.cast(value, tf.float32) if value.dtype == tf.bfloat16 else value
        return int(_read(self._time, tf.int64)), value.numpy()


@functools.cache
def _clock() -> Any:
    """Return the count of all values that were put in this process."""
    clock = _slot(tf.int64, ())
    with tf.init_scope():
        tf.raw_ops.AssignVariableOp(resource=clock, value=tf.constant(0, tf.int64))
    return clock


def _slot(dtype: Any, shape: Any) -> Any:
    """Create a resource outside of the current graph, which may be retraced."""
    with tf.init_scope():
        slot = tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=f"mixtrain_held_{next(_numbers)}")
    _slots[id(slot)] = slot
    return slot


def is_live(resource: Any) -> bool:
    """Whether a resource is that of a `LiveValue`, and not part of a network's state."""
    return _slots.get(id(resource)) is resource


def _read(slot: Any, dtype: Any) -> Tensor:
    return tf.raw_ops.ReadVariableOp(resource=slot, dtype=dtype)
