"""Values that a compiled step writes besides its results, and Python reads afterwards."""

from __future__ import annotations

import functools
import itertools
import weakref
from typing import Any

import numpy as np
import tensorflow as tf

from mixtrain.typing import Tensor, TensorLike

_numbers = itertools.count()
# The resources of all slots that are alive.
_slots: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


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
