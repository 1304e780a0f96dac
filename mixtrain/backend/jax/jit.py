"""Compile functions of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mixtrain.backend.jax.branches import call_with_branches
from mixtrain.backend.jax.state import Stateful


def compile_once(function: Callable[..., Any], *, jit: bool | None = None) -> Callable[..., Any]:
    """Compile a function of tensors of fixed shapes, in every mode.

    Args:
        function: Takes tensors and returns a structure of tensors.
        jit: Whether XLA compiles it; on JAX it always does.

    Returns:
        The compiled function; traced in its first call.
    """
    compiled = Stateful(function)
    return lambda *tensors: call_with_branches(compiled, *tensors)
