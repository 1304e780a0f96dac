"""The namespace for image arithmetic: `jax.numpy` for traced values of fixed sizes, NumPy for concrete values.

Products of float32 numbers that are summed are computed in float64, where they are exact: XLA fuses product and sum
without rounding in between, NumPy does not, and the results must be equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.typing import Tensor


class SizeUnknown(TypeError):
    """A size or another Python value of a traced tensor is required: rows must be computed one by one."""


def space(*values: Any) -> tuple[Any, ...]:
    """`jax.numpy` if a value is traced, or else `numpy`."""
    if is_traced(*values):
        return (jnp, *values)
    return (np, *(np.asarray(value) if isinstance(value, (jax.Array, np.generic)) else value for value in values))


def exact(values: Tensor) -> Tensor:
    """In float64; see above."""
    return values.astype(np.float64)


def cast(values: Any, dtype: Any) -> Tensor:
    return values.astype(dtype) if hasattr(values, "astype") else np.asarray(values, dtype)


def number(value: Any) -> Tensor:
    return cast(value, np.float32)


def numbers_to(count: Any, dtype: str | None = None) -> np.ndarray:
    return np.arange(known_size(count), dtype=dtype)


def one_hot(indices: np.ndarray, count: int) -> np.ndarray:
    return (indices[:, None] == np.arange(count)).astype(np.float32)


def choose(condition: Any, yes: Callable[[], Tensor], no: Callable[[], Tensor]) -> Tensor:
    return yes() if condition else no()


def lanczos(x: np.ndarray) -> np.ndarray:
    return (np.sinc(x) * np.sinc(x / 3.0)).astype(np.float32)


def is_integer(dtype: Any) -> bool:
    return bool(np.issubdtype(dtype, np.integer))


def size_of(image: Tensor) -> tuple[Tensor | int, Tensor | int]:
    return image.shape[-3], image.shape[-2]


def sized(image: Tensor, height: Tensor | int, width: Tensor | int, channels: int | None) -> Tensor:
    """As it is: only TensorFlow's graphs have unknown sizes."""
    return image


def saturate(values: Tensor, dtype: Any) -> Tensor:
    xp, values = space(values)
    if not is_integer(dtype):
        return values.astype(dtype)
    bounds = np.iinfo(dtype)
    if bounds.bits > 16:
        values = values.astype(np.float64)
    rounded = xp.clip(xp.round(values), float(bounds.min), float(bounds.max))
    with np.errstate(invalid="ignore"):
        return rounded.astype(dtype)


def is_traced(*values: Any) -> bool:
    """Whether any value is traced."""
    return any(isinstance(value, jax.core.Tracer) for value in values)


def known_size(value: Any) -> int:
    """Return a size as an int. Raises: SizeUnknown if it is traced."""
    if is_traced(value):
        raise SizeUnknown("expected a size that is fixed; got one that depends on the row")
    return int(value)


def seed_words(seeds: np.ndarray) -> np.ndarray:
    """Return seeds (..., 2) of int64 as (..., 4) of uint32: JAX has 64 bits only in its 64-bit mode."""
    return np.ascontiguousarray(seeds, np.int64).view(np.uint32)
