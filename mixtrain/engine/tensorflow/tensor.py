"""Tensors are TensorFlow's own; here is what mixtrain adds to them: a NumPy door and promotion inside `construct`."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from mixtrain.dtype import wider
from mixtrain.engine.tensorflow.layout import cast_keeping_layout, elementwise, twin_of

TENSOR_TYPES: tuple[type, ...] = (tf.Tensor, keras.KerasTensor)

_OPERATORS = (
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__",
    "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__pow__", "__rpow__", "__matmul__", "__rmatmul__",
    "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__",
)


class _Scope(threading.local):
    depth = 0


_scope = _Scope()


@contextlib.contextmanager
def promoting() -> Iterator[None]:
    """Let plain operators between half and float32 tensors promote to the wider, in this thread, until the end."""
    _scope.depth += 1
    try:
        yield
    finally:
        _scope.depth -= 1


def _promoted(operator: Callable[[Any, Any], Any], *, elementwise_operator: bool) -> Callable[[Any, Any], Any]:
    """Return the operator as `construct` sees it: it promotes, and it keeps channels-last twins (see layout.py)."""

    @functools.wraps(operator)
    def apply(self: Any, other: Any) -> Any:
        if not _scope.depth:
            return operator(self, other)
        if isinstance(other, (tf.Tensor, keras.Variable)):
            mine, theirs = self.dtype, tf.as_dtype(other.dtype)
            if mine != theirs and mine.is_floating and theirs.is_floating:
                dtype = wider(mine, theirs)
                self = cast_keeping_layout(self, dtype)
                other = cast_keeping_layout(tf.convert_to_tensor(other), dtype)
        if twin_of(self) is None or not elementwise_operator:
            return operator(self, other)
        if isinstance(other, (bool, int, float)):
            return elementwise(lambda value: operator(value, other), self)
        return elementwise(operator, self, other)

    return apply


def _asnumpy(self: tf.Tensor) -> np.ndarray:
    """Return the values as a NumPy array (MindSpore's name for `numpy`)."""
    return to_numpy(self)


def _install() -> None:
    """Give `tf.Tensor` the operators above and `asnumpy`.

    TensorFlow has no hook for operators of its tensors that can be limited to a scope, so the class's operators are
    wrapped once; outside `promoting` they do what they did.
    """
    for name in _OPERATORS:
        operator = getattr(tf.Tensor, name)
        setattr(tf.Tensor, name, _promoted(operator, elementwise_operator="matmul" not in name))
    tf.Tensor.asnumpy = _asnumpy


_install()


def is_tensor(value: Any) -> bool:
    """Say whether `value` is a tensor of the engine, or Keras's symbol for one."""
    return isinstance(value, TENSOR_TYPES)


def to_tensor(value: Any, dtype: str | None = None) -> Any:
    """Return `value` as a tensor, of `dtype` where it is given."""
    if isinstance(value, keras.Variable):
        # Keras would hand back the variable itself.
        value = tf.convert_to_tensor(value.value)
    return keras.ops.convert_to_tensor(value, dtype=dtype)


def to_numpy(value: Any) -> np.ndarray:
    """Return a tensor's or variable's values as a NumPy array; bfloat16, which NumPy lacks, comes as float32."""
    tensor = to_tensor(value)
    if tensor.dtype == tf.bfloat16:
        tensor = tf.cast(tensor, tf.float32)
    return np.asarray(keras.ops.convert_to_numpy(tensor))


def snapshot(variable: keras.Variable) -> Any:
    """Return a variable's present value, which later assignments leave alone."""
    return tf.identity(variable.value)


def name_scope(name: str) -> Any:
    """Name what is computed inside after a layer, so that a compiled step can be read and profiled."""
    return tf.name_scope(name)
