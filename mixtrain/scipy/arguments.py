"""Checks and conversions of the arguments of `mixtrain.scipy`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import keras

from mixtrain import backend, checks
from mixtrain.boundary import is_any_tensor, tensor
from mixtrain.dtype import DType, float32, float64, int32, int64
from mixtrain.ops.inputs import tensor_dtype
from mixtrain.typing import Tensor, TensorLike

NUMBERS: Final = (int32, int64, float32, float64)


def a_tensor(where: str, name: str, value: TensorLike, dtypes: Sequence[DType] = NUMBERS, **flags: Any) -> Tensor:
    """Return a Tensor of one of some dtypes; anything else, and `flags` that are not bools, are TypeErrors."""
    for flag, given in flags.items():
        checks.boolean(where, flag, given)
    if not is_any_tensor(value) or tensor_dtype(value) not in dtypes:
        names = checks.join_names(dtype.name for dtype in dtypes)
        write = f"mixtrain.Tensor({name}, mixtrain.{dtypes[-1].name})"
        raise checks.fail_type(where, f"{name} must be a Tensor of {names}", value, write)
    return tensor(where, value)


def square(where: str, name: str, x: Tensor, *, batches: bool = False) -> Tensor:
    """Return a square matrix; with `batches` there may be several. Another shape is a ValueError."""
    shape = tuple(x.shape)
    if len(shape) < 2 or shape[-1] != shape[-2] or len(shape) > 2 and not batches:
        raise checks.fail_value(where, f"{name} must be a square matrix (N, N)", shape, f"{name}[:N, :N]")
    return x


def right_side(where: str, name: str, a: Tensor, b: TensorLike) -> Tensor:
    """Return the right side `b` of the system of a matrix `a`: of its dtype and batch axes, with as many rows."""
    x, fit = a_tensor(where, "b", b, (tensor_dtype(a),)), tuple(a.shape[:-1])
    if fit not in (tuple(x.shape), tuple(x.shape[:-1])):
        raise checks.fail_value(where, f"b must be of {fit}, or with one more axis, as {name}", tuple(x.shape), "b.T")
    return x


def in_float64(x: Tensor, dtypes: Sequence[DType] = (int32, int64)) -> Tensor:
    """Return a tensor in float64, or what the backend has for it, if it is of some dtypes; else as it is."""
    return keras.ops.cast(x, backend.canonical_dtype(float64)) if tensor_dtype(x) in dtypes else x
