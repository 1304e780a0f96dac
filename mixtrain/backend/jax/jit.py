"""Compile functions of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mixtrain.backend.jax.branches import call_with_branches
from mixtrain.backend.jax.state import Stateful


def compile_once(function: Callable[..., Any], *, jit: bool | None = None) -> Callable[..., Any]:
    """XLA compiles every function, whatever `jit` says."""
    compiled = Stateful(function)
    return lambda *tensors: call_with_branches(compiled, *tensors)
