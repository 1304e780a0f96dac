"""Pooling of half tensors, which XLA compiles natively."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp

from mixtrain.typing import Tensor


def pool(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return function(jnp.asarray(x))
