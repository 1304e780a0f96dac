"""Tensors are JAX's arrays; here is how they are made and read, and what operators do inside `construct`."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.export
import jax.numpy as jnp
import keras
import numpy as np
from jax._src.array import ArrayImpl

from mixtrain.engine.jax.attached import Attached
from mixtrain.engine.jax.layout import elementwise, twin_of

TENSOR_TYPES: tuple[type, ...] = (jax.Array, keras.KerasTensor)

_OPERATORS: Final = (
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__",
    "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__pow__", "__rpow__", "__matmul__", "__rmatmul__",
    "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__",
)

# Takes an operator's name, its tensor and the other operand; returns both, cast, or None where it says nothing.
OperatorRule = Callable[[str, Any, Any], tuple[Any, Any] | None]


class _Rule:
    present: OperatorRule | None = None


def set_operator_rule(rule: OperatorRule | None) -> None:
    """Let a rule cast the operands of plain operators between tensors; None for no rule."""
    _Rule.present = rule


def promoting() -> contextlib.AbstractContextManager[None]:
    """Let plain operators between tensors of two formats promote; JAX's always do."""
    return contextlib.nullcontext()


def _in_library(frame: types.FrameType) -> bool:
    """Say whether an operator stands in JAX's code, or Keras's for it: what they compute with is theirs to say.

    And JAX keeps what it traced of its functions, also for calls to which no rule applies.
    """
    return frame.f_globals.get("__name__", "").startswith(("jax.", "keras.src.backend."))


def _wrapped(name: str, operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return an operator that asks the rule in force, and keeps channels-last twins (see layout.py)."""

    @functools.wraps(operator)
    def apply(self: Any, other: Any) -> Any:
        cast = None if _Rule.present is None or _in_library(sys._getframe(1)) else _Rule.present(name, self, other)
        if cast is not None:
            self, other = cast
        if isinstance(other, keras.Variable):
            other = other.value
        if "matmul" in name or (twin_of(self) is None and twin_of(other) is None):
            return operator(self, other)
        if isinstance(other, (bool, int, float)):
            return elementwise(lambda value: operator(value, other), self)
        return elementwise(operator, self, other)

    return apply


def _install() -> None:
    """Give JAX's arrays the operators above: they have no hook for it.

    Their class has no public name (`jax.Array` is another); tests/engine/test_tensor.py fails if it moves.
    """
    for kind in (ArrayImpl, jax.core.Tracer):
        for name in _OPERATORS:
            setattr(kind, name, _wrapped(name, getattr(kind, name)))
    jax.core.Tracer._keras_mask = _Mask()  # type: ignore[attr-defined]


class _Mask:
    """The mask that Keras's layers give a tensor and its losses read."""

    def __init__(self) -> None:
        self._masks = Attached()

    def __get__(self, tracer: Any, kind: type) -> Any:
        mask = self._masks.get(tracer)
        if mask is None:
            raise AttributeError("_keras_mask")
        return mask

    def __set__(self, tracer: Any, mask: Any) -> None:
        self._masks.put(tracer, mask)


_install()


def is_tensor(value: Any) -> bool:
    """Say whether `value` is a tensor of the engine, or Keras's symbol for one."""
    return isinstance(value, TENSOR_TYPES)


def is_open_size(value: Any) -> bool:
    """Say whether `value` is a size, or a part of a shape, that is known only when a function runs."""
    return is_tensor(value) or jax.export.is_symbolic_dim(value)


def byte_count(value: Any) -> int:
    """Return how much memory a tensor's values take, in bytes."""
    return math.prod(value.shape) * int(np.dtype(value.dtype).itemsize)


def is_symbolic(value: Any) -> bool:
    """Say whether a tensor belongs to a function that is being compiled and has no values yet."""
    return isinstance(value, (jax.core.Tracer, keras.KerasTensor))


def known_value(value: Any) -> np.ndarray | None:
    """Return a tensor's values where they are known; else None."""
    return None if is_symbolic(value) else np.asarray(value)


def bytes_of(dtype: str) -> int:
    """Return how many bytes one number of a format takes."""
    return int(jnp.dtype(dtype).itemsize)


def held_format(dtype: str) -> str:
    """Return the format in which tensors of a format are held here: without JAX's 64-bit mode, 64 bits become 32."""
    return str(jax.dtypes.canonicalize_dtype(dtype).name)


def to_tensor(value: Any, dtype: str | None = None) -> Any:
    """Return `value` as a tensor, of `dtype` where it is given, as such tensors are held."""
    if isinstance(value, keras.Variable):
        value = value.value
    if dtype is not None:
        dtype = held_format(dtype)
    elif isinstance(value, (np.ndarray, np.generic)):
        dtype = held_format(value.dtype.name)
    return keras.ops.convert_to_tensor(value, dtype=dtype)


def to_numpy(value: Any) -> np.ndarray:
    """Return a tensor's or variable's values as a NumPy array; bfloat16, which NumPy lacks, comes as float32."""
    tensor = to_tensor(value)
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
