"""Tensors are TensorFlow's own; here is how they are made and read, and that operators promote inside `construct`."""

from __future__ import annotations

import math
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from mixtrain.dtype import DTYPES, DType, bool_, float32, int64, is_float, promoted
from mixtrain.engine.tensorflow.layout import cast_keeping_layout, elementwise, twin_of

TENSOR_TYPES: tuple[type, ...] = (tf.Tensor, keras.KerasTensor)

_OPERATORS = (
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__",
    "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__pow__", "__rpow__", "__matmul__", "__rmatmul__",
    "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__",
)

_BY_TF: dict[tf.DType, DType] = {tf.as_dtype(dtype): dtype for dtype in DTYPES}


class _Scope(threading.local):
    depth = 0


_scope = _Scope()

# Takes an operator's name, its tensor and the other operand; returns both, cast, or None where it says nothing.
OperatorRule = Callable[[str, Any, Any], tuple[Any, Any] | None]


class _Rule:
    present: OperatorRule | None = None


def set_operator_rule(rule: OperatorRule | None) -> None:
    """Let a rule cast the operands of plain operators between tensors, which then promote; None for no rule."""
    _Rule.present = rule


@contextlib.contextmanager
def promoting() -> Iterator[None]:
    """Let plain operators between tensors of two formats promote, in this thread, until the end."""
    _scope.depth += 1
    try:
        yield
    finally:
        _scope.depth -= 1


def _meeting(self: Any, other: Any) -> DType | None:
    """Return the format in which an operator's tensors, or its tensor and number, meet; None for values of no number.

    Beside a Python number a tensor keeps its format, but an integer becomes float32 beside a float.
    """
    mine = _BY_TF.get(self.dtype)
    if mine is None:
        return None
    if isinstance(other, (tf.Tensor, keras.Variable)):
        theirs = _BY_TF.get(tf.as_dtype(other.dtype))
        return None if theirs is None else promoted(mine, theirs)
    if isinstance(other, float) and not is_float(mine):
        return float32
    return int64 if mine == bool_ and isinstance(other, int) and not isinstance(other, bool) else mine


def _promoted(
    name: str, operator: Callable[[Any, Any], Any], *, elementwise_operator: bool, divides: bool
) -> Callable[[Any, Any], Any]:
    """Return the operator as `construct` sees it: it promotes, and it keeps channels-last twins (see layout.py)."""

    @functools.wraps(operator)
    def apply(self: Any, other: Any) -> Any:
        cast = None if _Rule.present is None else _Rule.present(name, self, other)
        if cast is not None:
            self, other = cast
        elif not _scope.depth:
            return operator(self, other)
        if isinstance(other, np.generic):
            other = other.item()
        dtype = _meeting(self, other)
        if dtype is not None:
            # Integers have float32 quotients, where TensorFlow would give float64.
            dtype = float32 if divides and not is_float(dtype) else dtype
            self = cast_keeping_layout(self, dtype)
            if isinstance(other, (tf.Tensor, keras.Variable)):
                other = cast_keeping_layout(tf.convert_to_tensor(other), dtype)
        if not elementwise_operator or (twin_of(self) is None and twin_of(other) is None):
            return operator(self, other)
        if isinstance(other, (bool, int, float)):
            return elementwise(lambda value: operator(value, other), self)
        return elementwise(operator, self, other)

    return apply


def _install() -> None:
    """Give `tf.Tensor` the operators above.

    TensorFlow has no hook for operators of its tensors that can be limited to a scope, so the class's operators are
    wrapped once; outside `promoting` they do what they did.
    """
    for name in _OPERATORS:
        operator = getattr(tf.Tensor, name)
        promoting_operator = _promoted(
            name, operator, elementwise_operator="matmul" not in name, divides="truediv" in name
        )
        setattr(tf.Tensor, name, promoting_operator)


_install()


def is_tensor(value: Any) -> bool:
    """Say whether `value` is a tensor of the engine, or Keras's symbol for one."""
    return isinstance(value, TENSOR_TYPES)


def is_open_size(value: Any) -> bool:
    """Say whether `value` is a size, or a part of a shape, that is known only when a function runs."""
    return is_tensor(value)


def byte_count(value: Any) -> int:
    """Return how much memory a tensor's values take, in bytes."""
    return math.prod(value.shape) * int(value.dtype.size)


def is_symbolic(value: Any) -> bool:
    """Say whether a tensor belongs to a function that is being compiled and has no values yet."""
    return not hasattr(value, "numpy")


def known_value(value: Any) -> np.ndarray | None:
    """Return a tensor's values where they are known, which those of constants are while compiling too; else None."""
    found = tf.get_static_value(value)
    return None if found is None else np.asarray(found)


def bytes_of(dtype: str) -> int:
    """Return how many bytes one number of a format takes."""
    return int(tf.as_dtype(dtype).size)


def held_format(dtype: str) -> str:
    """Return the format in which tensors of a format are held here: that format."""
    return dtype


def to_tensor(value: Any, dtype: str | None = None) -> Any:
    """Return `value` as a tensor, of `dtype` where it is given."""
    if isinstance(value, keras.Variable):
        # Keras would hand back the variable itself.
        value = tf.convert_to_tensor(value.value)
    return keras.ops.convert_to_tensor(value, dtype=dtype)


def to_numpy(value: Any) -> np.ndarray:
    """Return a tensor's or variable's values as a NumPy array; bfloat16, which NumPy lacks, comes as float32."""
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
    return tf.name_scope(name)


def double_precision() -> contextlib.AbstractContextManager[Any]:
    """Let float64 be float64 in what is computed inside, which it always is here."""
    return contextlib.nullcontext()
