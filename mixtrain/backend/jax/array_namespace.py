"""Where image arithmetic runs: traced by JAX where sizes are fixed, in NumPy where a row has values of its own.

Products of float32 numbers that are added up are formed in float64, where they are exact: XLA adds without rounding
them first, NumPy does not, and the results must not differ.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


class SizeUnknown(TypeError):
    """A size, or a Python value, is asked of what is traced: the rows must be run one by one, by hand."""


def space(*values: Any) -> tuple[Any, ...]:
    """Return `jax.numpy` or `numpy`, and the values as it takes them: NumPy where none is traced."""
    if is_traced(*values):
        return (jnp, *values)
    return (np, *(np.asarray(value) if isinstance(value, (jax.Array, np.generic)) else value for value in values))


def exact(values: Any) -> Any:
    """Return float32 or smaller numbers in a format that holds the product of two of them."""
    return values.astype(np.float64)


def is_traced(*values: Any) -> bool:
    """Whether one of the values is being traced."""
    return any(isinstance(value, jax.core.Tracer) for value in values)


def known_size(value: Any) -> int:
    """Return a size as an int.

    Raises:
        SizeUnknown: It is being traced.
    """
    if is_traced(value):
        raise SizeUnknown("expected a size that is fixed; got one that depends on the row")
    return int(value)


def seed_words(seeds: np.ndarray) -> np.ndarray:
    """Return seeds (..., 2) of 64 bits as (..., 4) of 32 bits, which JAX has everywhere."""
    return np.ascontiguousarray(seeds, np.int64).view(np.uint32)
