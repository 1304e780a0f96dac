"""Create tensors of a shape and a value, or of a range of numbers, with their primitives."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, float32, int64, is_float
from mixtrain.ops.inputs import is_number, sizes_of, tensor, tensor_dtype
from mixtrain.ops.primitive import configured, primitives
from mixtrain.typing import DTypeLike, Tensor, TensorLike


def _filled(
    where: str, size: int | Sequence[int] | Tensor, value: TensorLike, dtype: DTypeLike | None, *, name: str = "shape"
) -> Tensor:
    """Return a tensor of one value, in `dtype`, or in the dtype of the value for None."""
    sizes = sizes_of(where, size, name=name)
    if any(isinstance(entry, int) and entry < 0 for entry in sizes):
        raise checks.fail_value(where, f"{name} must hold no negative size", sizes, f"{name}=(2, 3)")
    scalar = tensor(where, value)
    if scalar.shape != ():
        raise checks.fail_value(where, "the value must be one number", tuple(scalar.shape), "0.0")
    return keras.ops.broadcast_to(scalar if dtype is None else backend.to_tensor(scalar, as_dtype(dtype)), sizes)


def zeros(size: int | Sequence[int] | Tensor, dtype: DTypeLike | None = None) -> Tensor:
    """Zeros of shape `size`, a tuple or an int, and `dtype` (None: float32). Example: ``ops.zeros((1, 2))``."""
    return _filled("ops.zeros", size, 0, dtype or float32, name="size")


def ones(shape: int | Sequence[int] | Tensor, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of ones of `shape` and `dtype` (float32). Example: ``ops.ones((2, 3))``."""
    return _filled("ops.ones", shape, 1, dtype or float32)


def full(size: int | Sequence[int] | Tensor, fill_value: TensorLike, *, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of shape `size` filled with `fill_value`, of `dtype`; the default is int64, as in MindSpore.

    Example: ``ops.full((2,), 3.5, dtype=mixtrain.float32)`` is ``[3.5, 3.5]``.
    """
    return _filled("ops.full", size, fill_value, dtype or int64, name="size")


def fill(type: DTypeLike, shape: int | Sequence[int] | Tensor, value: TensorLike) -> Tensor:
    """A tensor of dtype `type` and `shape` filled with `value`. Example: ``ops.fill(mixtrain.float32, (2,), 3)``."""
    values = tensor("ops.fill", value)
    if len(values.shape) and tuple(values.shape) == tuple(sizes_of("ops.fill", shape)):
        return keras.ops.cast(values, as_dtype(type))
    return _filled("ops.fill", shape, value, as_dtype(type))


def _like(where: str, input: TensorLike, value: TensorLike, dtype: DTypeLike | None) -> Tensor:
    return keras.ops.full_like(tensor(where, input), value, dtype=None if dtype is None else as_dtype(dtype))


def zeros_like(input: TensorLike, *, dtype: DTypeLike | None = None) -> Tensor:
    """Zeros of the shape and dtype of `input`, or of `dtype`. Example: ``ops.zeros_like(x)``."""
    return _like("ops.zeros_like", input, 0, dtype)


def ones_like(input: TensorLike, *, dtype: DTypeLike | None = None) -> Tensor:
    """Ones of the shape and dtype of `input`, or of `dtype`. Example: ``ops.ones_like(x)``."""
    return _like("ops.ones_like", input, 1, dtype)


def full_like(input: TensorLike, fill_value: TensorLike, *, dtype: DTypeLike | None = None) -> Tensor:
    """`fill_value` in the shape and dtype of `input`, or in `dtype`. Example: ``ops.full_like(x, 2)``."""
    return _like("ops.full_like", input, fill_value, dtype)


def eye(n: int, m: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """`n` rows and `m` (else `n`) columns with ones on the diagonal, of `dtype` (float32). Example: ``ops.eye(3)``."""
    rows = checks.integer("ops.eye", "n", n, at_least=0, example=3)
    columns = rows if m is None else checks.integer("ops.eye", "m", m, at_least=0, example=3)
    return keras.ops.eye(rows, columns, dtype=as_dtype(dtype or float32))


def arange(
    start: TensorLike = 0, end: TensorLike | None = None, step: TensorLike = 1, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Numbers from `start` (or 0) to `end`, excluded, by `step`; `dtype` None: int64 for ints, float32 for floats.

    Example: ``ops.arange(1, 7, 2)`` is ``[1, 3, 5]``.
    """
    if end is None:
        start, end = 0, start
    for name, value in (("start", start), ("end", end), ("step", step)):
        if isinstance(value, (bool, list, tuple, str, set)):
            raise checks.fail_type("ops.arange", f"{name} must be a number", value, f"{name}=3")
        if getattr(value, "ndim", 0):
            raise checks.fail_value("ops.arange", f"{name} must have no axes", tuple(value.shape), f"{name}={name}[0]")
    if is_number(step) and step == 0:
        raise checks.fail_value("ops.arange", "step must not be 0", step, "step=1")
    fractional = any(
        is_float(tensor_dtype(value)) if hasattr(value, "dtype") else isinstance(value, float)
        for value in (start, end, step)
    )
    dtype = backend.canonical_dtype(as_dtype((float32 if fractional else int64) if dtype is None else dtype))
    if fractional and not is_float(as_dtype(dtype)):
        return keras.ops.cast(keras.ops.arange(start, end, step, dtype=float32), dtype)
    return keras.ops.arange(start, end, step, dtype=dtype)


def range(start: TensorLike, end: TensorLike, step: TensorLike, maxlen: int = 1000000) -> Tensor:
    """`arange` from `start` to before `end` by `step`; `maxlen` is accepted for MindSpore scripts."""
    return arange(start, end, step)


def linspace(start: TensorLike, end: TensorLike, steps: int) -> Tensor:
    """`steps` float32 numbers from `start` to `end`, both included. Example: ``ops.linspace(0, 1, 5)``."""
    count = checks.integer("ops.linspace", "steps", steps, at_least=1, example=5)
    first, last = (keras.ops.cast(tensor("ops.linspace", value), float32) for value in (start, end))
    return keras.ops.linspace(first, last, count, dtype=float32)


def _fill(dtype: DTypeLike, dims: int | Sequence[int] | Tensor, x: TensorLike) -> Tensor:
    """`fill` with `dtype`, shape `dims` and value `x`."""
    return fill(dtype, dims, x)


def _fill_v2(shape: int | Sequence[int] | Tensor, value: TensorLike) -> Tensor:
    """A tensor of `shape` and `value`, in the dtype of the value."""
    return _filled("ops.FillV2", shape, value, None)


def _eye(n: int, m: int, dtype: DTypeLike | None) -> Tensor:
    """`eye` of `n` rows and `m` columns in `dtype`."""
    return eye(n, m, dtype)


Zeros, Ones, ZerosLike, OnesLike, Fill, FillV2, Eye, LinSpace = primitives(
    Zeros=zeros, Ones=ones, ZerosLike=zeros_like, OnesLike=ones_like, Fill=_fill, FillV2=_fill_v2, Eye=_eye,
    LinSpace=linspace,
)
Range = configured("Range", range, maxlen=1000000)
