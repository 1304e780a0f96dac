"""Random numbers, different in each call, compiled or not; `set_seed` makes them reproducible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, float32, int32, int64, is_float
from mixtrain.ops.inputs import known_int, sizes_of, tensor, tensor_dtype, unpack
from mixtrain.ops.primitive import as_primitive
from mixtrain.seed import stream_of
from mixtrain.typing import DTypeLike, Tensor, TensorLike


def uniform(
    shape: int | Sequence[int] | Tensor, minval: TensorLike, maxval: TensorLike, seed: int | None = None,
    dtype: DTypeLike = float32,
) -> Tensor:
    """Numbers of `shape`, uniform from `minval` to `maxval`, excluded; bounds are numbers or tensors that broadcast.

    `seed`: seed of a stream of its own, None for the stream of the operation; `dtype`: a float dtype, or int32.
    Example: ``ops.uniform((2, 3), 0.0, 1.0)``.
    """
    where, dtype = "ops.uniform", as_dtype(dtype)
    low, high = (keras.ops.cast(tensor(where, limit), float32) for limit in (minval, maxval))
    values = low + _unit(where, _broadcast(where, shape, low, high), seed) * (high - low)
    return backend.to_tensor(values if is_float(dtype) else keras.ops.floor(values), dtype)


def normal(
    shape: int | Sequence[int] | Tensor, mean: TensorLike, stddev: TensorLike, seed: int | None = None
) -> Tensor:
    """Normal float32 numbers of `shape`; `mean` and `stddev` are numbers or tensors that broadcast.

    `seed`: seed of a stream of its own, None for the stream of the operation. Example:
    ``ops.normal((2, 3), 0.0, 1.0)``.
    """
    where = "ops.normal"
    mean, stddev = (keras.ops.cast(tensor(where, value), float32) for value in (mean, stddev))
    return mean + stddev * _standard(where, _broadcast(where, shape, mean, stddev), seed)


def standard_normal(shape: int | Sequence[int] | Tensor, seed: int | None = None) -> Tensor:
    """Normal numbers of `shape`, mean 0, deviation 1; `seed` as in `normal`: ``ops.standard_normal((2, 3))``."""
    return _standard("ops.standard_normal", sizes_of("ops.standard_normal", shape), seed)


def rand(*size: int, dtype: DTypeLike | None = None, seed: int | None = None) -> Tensor:
    """Draw numbers uniformly from [0, 1): ``ops.rand(2, 3)`` or ``ops.rand((2, 3))``; `size`, `dtype` float32.

    `seed` gives a stream of its own.
    """
    shape = sizes_of("ops.rand", unpack(size) if size else (1,), name="size")
    return keras.ops.cast(_unit("ops.rand", shape, seed), _float("ops.rand", dtype))


def randn(*size: int, dtype: DTypeLike | None = None, seed: int | None = None) -> Tensor:
    """Draw normal numbers, mean 0 and deviation 1: ``ops.randn(2, 3)``; `size`, `dtype` float32.

    `seed` gives a stream of its own.
    """
    shape = sizes_of("ops.randn", unpack(size) if size else (1,), name="size")
    return keras.ops.cast(_standard("ops.randn", shape, seed), _float("ops.randn", dtype))


def randint(
    low: int, high: int, size: int | Sequence[int] | Tensor, seed: int | None = None, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Ints of shape `size` from `low` to `high` - 1, of `dtype` (int64); `seed` as in `normal`.

    Example: ``ops.randint(0, 10, (2, 3))``.
    """
    where = "ops.randint"
    low = checks.integer(where, "low", low, at_least=-(2**31), example=0)
    checks.integer(where, "high", high, at_least=low + 1)
    dtype = int64 if dtype is None else as_dtype(dtype)
    if is_float(dtype):
        raise checks.fail_value(where, "dtype must be an int format", dtype, "dtype=mixtrain.int32")
    shape = sizes_of(where, size, name="size")
    values = keras.random.randint(shape, low, high, dtype=int32, seed=stream_for(where, seed))
    return backend.to_tensor(values, dtype)


def rand_like(input: TensorLike, seed: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """`rand` of the shape of `input`, in its dtype or in `dtype`; `seed` as there. Example: ``ops.rand_like(x)``."""
    x = tensor("ops.rand_like", input)
    dtype = _float("ops.rand_like", tensor_dtype(x) if dtype is None else dtype)
    return keras.ops.cast(_unit("ops.rand_like", keras.ops.shape(x), seed), dtype)


def randn_like(input: TensorLike, seed: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """`randn` of the shape of `input`, in `dtype`, else float32; `seed` as there. Example: ``ops.randn_like(x)``."""
    x = tensor("ops.randn_like", input)
    dtype = _float("ops.randn_like", float32 if dtype is None else dtype)
    return keras.ops.cast(_standard("ops.randn_like", keras.ops.shape(x), seed), dtype)


def randperm(n: int, seed: int = 0, offset: int = 0, dtype: DTypeLike = int64) -> Tensor:
    """The ints from 0 to `n` - 1 in random order, of `dtype`; `seed` as in `normal`, 0 for none; `offset` is accepted.

    Example: ``ops.randperm(3)``.
    """
    count = checks.integer("ops.randperm", "n", known_int("ops.randperm", n), at_least=1)
    return backend.to_tensor(keras.ops.argsort(_unit("ops.randperm", (count,), seed)), as_dtype(dtype))


def _broadcast(where: str, shape: int | Sequence[int] | Tensor, *tensors: Tensor) -> tuple[int, ...]:
    """Return the shape that `shape` and those of the tensors broadcast to."""
    return np.broadcast_shapes(sizes_of(where, shape), *(tuple(value.shape) for value in tensors))


def _float(where: str, dtype: DTypeLike | None) -> str:
    dtype = float32 if dtype is None else as_dtype(dtype)
    if not is_float(dtype):
        raise checks.fail_value(where, "dtype must be a float format", dtype, "dtype=mixtrain.float32")
    return dtype


def stream_for(where: str, seed: int | Tensor | None, seed2: int | Tensor = 0) -> keras.random.SeedGenerator:
    """Return the random stream of an operation for its seeds, which may be tensors or None."""
    number = sum(
        int(np.asarray(backend.to_numpy(value))) if backend.is_tensor(value) else value or 0 for value in (seed, seed2)
    )
    return stream_of(where.rpartition(".")[2], checks.integer(where, "seed", number, at_least=0))


def _unit(where: str, shape: int | Sequence[int] | Tensor, seed: Any) -> Tensor:
    return keras.random.uniform(shape, dtype="float32", seed=stream_for(where, seed))


def _standard(where: str, shape: int | Sequence[int] | Tensor, seed: Any) -> Tensor:
    return keras.random.normal(shape, dtype="float32", seed=stream_for(where, seed))


@as_primitive
def UniformReal(shape: int | Sequence[int] | Tensor, *, seed: int = 0, seed2: int = 0) -> Tensor:
    """Numbers from [0, 1), float32: ``ops.UniformReal()((2, 3))``; `seed` and `seed2` give a stream of their own."""
    return _unit("UniformReal", sizes_of("UniformReal", shape), seed * 65537 + seed2)


@as_primitive
def StandardNormal(shape: int | Sequence[int] | Tensor, *, seed: int = 0, seed2: int = 0) -> Tensor:
    """Normal numbers, mean 0 and deviation 1, float32: ``ops.StandardNormal()((2, 3))``; `seed`, `seed2` as there."""
    return _standard("StandardNormal", sizes_of("StandardNormal", shape), seed * 65537 + seed2)


@as_primitive
def UniformInt(
    shape: int | Sequence[int] | Tensor, minval: TensorLike, maxval: TensorLike, *, seed: int = 0, seed2: int = 0
) -> Tensor:
    """Ints from `minval` to `maxval` - 1, int32: ``ops.UniformInt()((2, 3), 0, 10)``; `seed`, `seed2` as there."""
    low, high = (keras.ops.cast(tensor("UniformInt", limit), float32) for limit in (minval, maxval))
    values = _unit("UniformInt", sizes_of("UniformInt", shape), seed * 65537 + seed2)
    return keras.ops.cast(keras.ops.floor(low + values * (high - low)), int32)
