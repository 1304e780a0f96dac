"""Python's operators between tensors: MindSpore's promotion, and a short way for operands that need none."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any, Literal

import keras
import numpy as np

from mixtrain import backend
from mixtrain.autocast.state import autocast_in_force
from mixtrain.boundary import TensorLike, running, wrapped
from mixtrain.dtype import DTYPES, is_float, promoted
from mixtrain.ops import products
from mixtrain.ops.inputs import dtype_of, format_of, is_number, tensor

_Operator = Callable[[Any, Any], Any]
# What a backend's own operator serves: integers, floats and Python numbers; no integers; two tensors of floats alone.
_Serves = Literal["numbers", "floats", "float tensors"]
_OPERANDS = (TensorLike, *backend.TENSOR_TYPES, np.ndarray, np.generic, numbers.Number, keras.Variable, list, tuple)
# A list equals no tensor.
_COMPARED = _OPERANDS[:-2]


@functools.cache
def is_numeric(dtype: Any) -> bool:
    """Whether a backend's dtype is one that `DType` has; strings are not."""
    return (dtype if isinstance(dtype, str) else dtype.name) in DTYPES


@functools.cache
def _numbers_kept(dtype: Any, of: _Serves) -> tuple[type, ...]:
    """Return the Python numbers beside which a tensor of a backend's dtype keeps it."""
    name = dtype_of(dtype)
    if "float" in name:
        return () if of == "float tensors" else (float, int)
    return (int,) if of == "numbers" and name in ("int32", "int64") else ()


@functools.cache
def _stays(dtype: Any, of: _Serves) -> bool:
    """Whether two tensors of a backend's dtype give that dtype, or bools."""
    return "float" in dtype_of(dtype) or of == "numbers" and dtype_of(dtype) != "bool"


def operators(
    name: str,
    direct: _Operator | None,
    function: _Operator,
    of: _Serves = "numbers",
    reflected_function: _Operator | None = None,
) -> tuple[_Operator, _Operator]:
    """Return an operator and its reflected form.

    Args:
        name: Its name, without underscores.
        direct: The backend's own operator, used where it means what MindSpore's does: for operands of one dtype, and
            beside Python numbers that change no dtype. None where it never does.
        function: The operator of `mixtrain.ops`, which promotes.
        of: What `direct` serves.
        reflected_function: The operator of `mixtrain.ops` for the reflected form, where it is another.
    """
    operands = _COMPARED if name in ("eq", "ne") else _OPERANDS

    def compute(x: Any, y: Any, function: _Operator = function) -> Any:
        # Whoever calls it, an operator of Tensors gives a Tensor.
        with running("tensors"):
            return function(x, y)

    def forward(self: Any, other: Any) -> Any:
        if direct is not None and autocast_in_force() is None:
            mine = self.held
            kind = type(other)
            theirs = None
            if kind is type(self):
                found = other.held
                plain = not isinstance(found, backend.TensorBase) and not isinstance(mine, backend.TensorBase)
                if plain and (found.dtype is mine.dtype or found.dtype == mine.dtype) and _stays(mine.dtype, of):
                    theirs = found
            elif kind in _numbers_kept(mine.dtype, of):
                theirs = other
            if theirs is not None:
                try:
                    return wrapped(direct(mine, theirs))
                except Exception:
                    return compute(self, other)  # It says what is wrong.
        if not isinstance(other, operands):
            return NotImplemented
        return compute(self, other)

    def reflected(self: Any, other: Any) -> Any:
        if not isinstance(other, operands):
            return NotImplemented
        if direct is not None and autocast_in_force() is None:
            mine = self.held
            if type(other) in _numbers_kept(mine.dtype, of):
                return wrapped(direct(other, mine))
        return compute(other, self, reflected_function or function)

    forward.__name__ = forward.__qualname__ = f"__{name}__"
    reflected.__name__ = reflected.__qualname__ = f"__r{name}__"
    return forward, reflected


def alike(direct: _Operator) -> _Operator:
    """Return a comparison that fails for tensors of two shapes, which TensorFlow's own would call unequal."""

    def compare(x: Any, y: Any) -> Any:
        if getattr(y, "shape", None) not in (None, x.shape):
            raise ValueError("The shapes differ.")
        return direct(x, y)

    return compare


def with_scalars(function: _Operator) -> _Operator:
    """Return an operator for which a tensor without axes is as a number to one with axes of the same kind.

    MindSpore's * and / keep the dtype of the tensor with axes there; other operators promote both as any tensors.
    """

    def compute(x: Any, y: Any) -> Any:
        both = isinstance(x, TensorLike) and isinstance(y, TensorLike)
        if both and x.dtype != y.dtype and bool(len(x.shape)) != bool(len(y.shape)):
            kept = (x if len(x.shape) else y).dtype
            if is_float(x.dtype) == is_float(y.dtype) and "bool" not in (x.dtype, y.dtype):
                x, y = x.astype(kept), y.astype(kept)
        return function(x, y)

    return compute


def matmul(x: Any, y: Any) -> Any:
    """Return ``x @ y`` of tensors of one dtype, which it keeps; an autocast in force decides for other ones.

    Raises:
        TypeError: One is a number, or the dtypes differ.
    """
    if is_number(x) or is_number(y):
        raise TypeError("Tensor: expected tensors on both sides of @; got a number. Write x * y.")
    one, other = (format_of(tensor("Tensor", value)) for value in (x, y))
    if autocast_in_force() is not None:
        return products.matmul(x, y)
    if one != other:
        raise TypeError(
            f"Tensor: expected tensors of one dtype on both sides of @; got {one.name} and {other.name}. "
            f"Write x.astype({promoted(one, other)!r})."
        )
    product = products.matmul(x, y)
    return product.astype(one) if one.startswith(("int", "uint")) else product
