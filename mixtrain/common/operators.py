"""Python's operators of tensors: MindSpore's type promotion, and a fast path for operands that need none."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any, Literal

import keras
import numpy as np

from mixtrain import backend, ops
from mixtrain.autocast.state import autocast_in_force
from mixtrain.boundary import UserTensor, in_mode, to_tensors
from mixtrain.dtype import DTYPES, is_float
from mixtrain.ops.inputs import dtype_of, is_number, tensor, tensor_dtype
from mixtrain.ops.promotion import promoted
from mixtrain.typing import BackendTensor, Tensor, TensorLike

_Operator = Callable[[TensorLike, TensorLike], Tensor]
# Operands that a backend's own operator supports: integers, floats and Python numbers; floats and Python numbers; or
# two float tensors.
_Supported = Literal["numbers", "floats", "float tensors"]
_OPERANDS = (UserTensor, *backend.TENSOR_TYPES, np.ndarray, np.generic, numbers.Number, keras.Variable, list, tuple)
# No tensor equals a list.
_COMPARABLE = _OPERANDS[:-2]


@functools.cache
def is_numeric(dtype: Any) -> bool:
    """Whether a backend dtype has a `DType`; a dtype of strings has none."""
    return (dtype if isinstance(dtype, str) else dtype.name) in DTYPES


@functools.cache
def _scalar_types(dtype: Any, supports: _Supported) -> tuple[type, ...]:
    """Return the types of Python numbers that leave the dtype of a tensor unchanged."""
    name = dtype_of(dtype)
    if "float" in name:
        return () if supports == "float tensors" else (float, int)
    return (int,) if supports == "numbers" and name in ("int32", "int64") else ()


@functools.cache
def _keeps_dtype(dtype: Any, supports: _Supported) -> bool:
    """Whether two tensors of a backend dtype give that dtype, or bools."""
    return "float" in dtype_of(dtype) or supports == "numbers" and dtype_of(dtype) != "bool"


def operators(
    name: str, direct: _Operator | None, function: _Operator, supports: _Supported = "numbers",
    reflected_function: _Operator | None = None,
) -> tuple[_Operator, _Operator]:
    """Return an operator and its reflected form.

    `name`: Its name, without underscores. `direct`: The backend's own operator, used where it gives what MindSpore's
    gives: for operands of one dtype, and for Python numbers that do not change the dtype. None where it never does.
    `function`: The operator of `mixtrain.ops`, which promotes its operands. `supports`: The operands that `direct`
    supports. `reflected_function`: The operator of `mixtrain.ops` for the reflected form; `function` by default.
    """
    operand_types = _COMPARABLE if name in ("eq", "ne") else _OPERANDS

    def compute(x: TensorLike, y: TensorLike, function: _Operator = function) -> Tensor:
        # An operator of Tensors gives a Tensor, in library code too.
        with in_mode("tensors"):
            return function(x, y)

    def forward(self: UserTensor, other: Any) -> Tensor:
        if direct is not None and autocast_in_force() is None:
            x, y = self.content, None
            kind = type(other)
            if kind is type(self):
                content = other.content
                plain = not isinstance(content, backend.TensorBase) and not isinstance(x, backend.TensorBase)
                if plain and (content.dtype is x.dtype or content.dtype == x.dtype) and _keeps_dtype(x.dtype, supports):
                    y = content
            elif kind in _scalar_types(x.dtype, supports):
                y = other
            if y is not None:
                try:
                    return to_tensors(direct(x, y))
                except Exception:
                    return compute(self, other)  # Its error message says what is wrong.
        if not isinstance(other, operand_types):
            return NotImplemented
        return compute(self, other)

    def reflected(self: UserTensor, other: Any) -> Tensor:
        if not isinstance(other, operand_types):
            return NotImplemented
        if direct is not None and autocast_in_force() is None:
            x = self.content
            if type(other) in _scalar_types(x.dtype, supports):
                return to_tensors(direct(other, x))
        return compute(other, self, reflected_function or function)

    forward.__name__ = forward.__qualname__ = f"__{name}__"
    reflected.__name__ = reflected.__qualname__ = f"__r{name}__"
    return forward, reflected


def same_shapes(direct: _Operator) -> _Operator:
    """Return a comparison that raises for tensors of two shapes, which TensorFlow's own calls unequal."""

    def compare(x: BackendTensor, y: BackendTensor | float) -> BackendTensor:
        if getattr(y, "shape", None) not in (None, x.shape):
            raise ValueError("The shapes differ.")
        return direct(x, y)

    return compare


def with_scalars(function: _Operator) -> _Operator:
    """Return an operator that treats a tensor of rank 0 as a Python number beside one with axes of the same kind.

    MindSpore's * and / keep the dtype of the tensor with axes there; other operators promote both.
    """

    def compute(x: TensorLike, y: TensorLike) -> Tensor:
        both = isinstance(x, UserTensor) and isinstance(y, UserTensor)
        if both and x.dtype != y.dtype and bool(len(x.shape)) != bool(len(y.shape)):
            dtype = (x if len(x.shape) else y).dtype
            if is_float(x.dtype) == is_float(y.dtype) and "bool" not in (x.dtype, y.dtype):
                x, y = x.astype(dtype), y.astype(dtype)
        return function(x, y)

    return compute


def matmul(x: TensorLike, y: TensorLike) -> Tensor:
    """Return ``x @ y`` in the dtype of both tensors; under an autocast the dtypes may differ.

    Raises:
        TypeError: One is a number, or the dtypes differ.
    """
    if is_number(x) or is_number(y):
        raise TypeError("Tensor: expected tensors on both sides of @; got a number. Write x * y.")
    left, right = (tensor_dtype(tensor("Tensor", value)) for value in (x, y))
    if autocast_in_force() is not None:
        return ops.matmul(x, y)
    if left != right:
        raise TypeError(
            f"Tensor: expected tensors of one dtype on both sides of @; got {left.name} and {right.name}. "
            f"Write x.astype({promoted(left, right)!r})."
        )
    product = ops.matmul(x, y)
    return product.astype(left) if left.startswith(("int", "uint")) else product
