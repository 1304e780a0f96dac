"""Products of half tensors, which XLA compiles natively."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from mixtrain.typing import Tensor


def product(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    # In eager code `asarray` of an array costs as much as a small product.
    x, y = (value if isinstance(value, jax.Array) else jnp.asarray(value) for value in (x, y))
    return function(x, y)


def times_transposed(x: Tensor, weight: Tensor) -> Tensor:
    return product(lambda x, weight: jnp.matmul(x, weight.T), x, weight)
