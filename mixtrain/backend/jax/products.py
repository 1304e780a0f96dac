"""Products of half tensors, which XLA compiles natively."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from mixtrain.typing import Tensor


def product(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    """Return ``function(x, y)``, which is linear in each argument (a convolution or a matrix product).

    Args:
        function: Takes two tensors of one dtype and returns one of that dtype.
        x: A tensor.
        y: A tensor of the same dtype.
    """
    # In eager code `asarray` of an array costs as much as a small product.
    x, y = (value if isinstance(value, jax.Array) else jnp.asarray(value) for value in (x, y))
    return function(x, y)


def times_transposed(x: Tensor, weight: Tensor) -> Tensor:
    """Return ``x @ weight.T`` of two matrices of one dtype."""
    return product(lambda x, weight: jnp.matmul(x, weight.T), x, weight)
