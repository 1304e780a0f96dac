"""The namespace for image arithmetic: `jax.numpy` for traced values of fixed sizes, NumPy for concrete values.

Products of float32 numbers that are summed are computed in float64, where they are exact: XLA fuses product and sum
without rounding in between, NumPy does not, and the results must be equal.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.typing import Tensor


class SizeUnknown(TypeError):
    """A size or another Python value of a traced tensor is required: rows must be computed one by one."""


def space(*values: Any) -> tuple[Any, ...]:
    """Return `jax.numpy` if a value is traced or else `numpy`, and the values as arrays of it."""
    if is_traced(*values):
        return (jnp, *values)
    return (np, *(np.asarray(value) if isinstance(value, (jax.Array, np.generic)) else value for value in values))


def exact(values: Tensor) -> Tensor:
    """Return float32 or smaller values in a dtype in which products of two of them are exact."""
    return values.astype(np.float64)


def is_traced(*values: Any) -> bool:
    """Whether any value is traced."""
    return any(isinstance(value, jax.core.Tracer) for value in values)


def known_size(value: Any) -> int:
    """Return a size as an int.

    Raises:
        SizeUnknown: It is traced.
    """
    if is_traced(value):
        raise SizeUnknown("expected a size that is fixed; got one that depends on the row")
    return int(value)


def seed_words(seeds: np.ndarray) -> np.ndarray:
    """Return seeds (..., 2) of int64 as (..., 4) of uint32: JAX has 64 bits only in its 64-bit mode."""
    return np.ascontiguousarray(seeds, np.int64).view(np.uint32)
