"""Values that leave a compiled step by the side: a compiled call writes them, Python reads them afterwards."""

from __future__ import annotations

import functools
import itertools
import weakref
from typing import Any

import numpy as np
import tensorflow as tf

_numbers = itertools.count()
# The resources of all slots, for as long as they live.
_slots: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


class LiveValue:
    """The last value that was put here, in a compiled step (by XLA too) or from Python.

    Args:
        value: A tensor of the kind that will be put here: its dtype and shape. With XLA, values put between two calls
            of `take` have one size.

    Example:
        >>> held = LiveValue(tf.constant([1.0, 2.0]))
        >>> held.take() is None
        True
        >>> held.put(tf.constant([3.0, 4.0]))
        >>> held.take()[1].tolist()
        [3.0, 4.0]
    """

    def __init__(self, value: Any) -> None:
        self._dtype = value.dtype
        # Without a value at first: XLA refuses to change the size of one that has a value.
        self._value = _slot(value.dtype, value.shape)
        self._moment = _slot(tf.int64, ())

    def put(self, value: Any) -> None:
        """Keep a value."""
        tf.raw_ops.AssignVariableOp(resource=self._value, value=value)
        tf.raw_ops.AssignAddVariableOp(resource=_clock(), value=tf.constant(1, tf.int64))
        tf.raw_ops.AssignVariableOp(resource=self._moment, value=_read(_clock(), tf.int64))

    def take(self) -> tuple[int, np.ndarray] | None:
        """Return when a value was put since the last time, as a number that grows, and the value; None without one."""
        if not bool(tf.raw_ops.VarIsInitializedOp(resource=self._value)):
            return None
        value = _read(self._value, self._dtype)
        tf.raw_ops.DestroyResourceOp(resource=self._value)
        value = tf.cast(value, tf.float32) if value.dtype == tf.bfloat16 else value
        return int(_read(self._moment, tf.int64)), value.numpy()


@functools.cache
def _clock() -> Any:
    """Return where the count of all values put so far is kept."""
    clock = _slot(tf.int64, ())
    with tf.init_scope():
        tf.raw_ops.AssignVariableOp(resource=clock, value=tf.constant(0, tf.int64))
    return clock


def _slot(dtype: Any, shape: Any) -> Any:
    """Return a new place for a value, outside of the graph that is being made, which may be traced more than once."""
    with tf.init_scope():
        slot = tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=f"mixtrain_held_{next(_numbers)}")
    _slots[id(slot)] = slot
    return slot


def is_live(resource: Any) -> bool:
    """Whether a resource is a place of a value that leaves a step, not a part of a network's state."""
    return _slots.get(id(resource)) is resource


def _read(slot: Any, dtype: Any) -> Any:
    return tf.raw_ops.ReadVariableOp(resource=slot, dtype=dtype)
