"""Products of half tensors: XLA has kernels for them, or makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def product(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Return ``function(x, y)``, a function that is linear in each of two tensors (a convolution, a matrix product).

    Args:
        function: Takes two tensors of one format and returns one of that format.
        x: A tensor.
        y: A tensor of the same format.
    """
    # In eager code `asarray` of an array would cost as much as a small product.
    x, y = (value if isinstance(value, jax.Array) else jnp.asarray(value) for value in (x, y))
    return function(x, y)


def times_transposed(x: Any, weight: Any) -> Any:
    """Return ``x @ weight.T`` of two matrices of one format."""
    return product(lambda x, weight: jnp.matmul(x, weight.T), x, weight)
