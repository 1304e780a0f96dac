"""Pooling of half tensors: XLA has kernels for it, or makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp


def pool(function: Callable[[Any], Any], x: Any) -> Any:
    """Return ``function(x)``, a pooling: the largest number or the mean of each window.

    Args:
        function: Takes a tensor and returns one of its format.
        x: A tensor.
    """
    return function(jnp.asarray(x))
