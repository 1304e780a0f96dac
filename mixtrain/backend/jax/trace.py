"""The functions that are being compiled around the code that asks, and code that is compiled as it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from jax._src import core

from mixtrain.backend.jax.state import open_traces

F = TypeVar("F", bound=Callable[..., Any])


def is_being_traced() -> bool:
    """Whether JAX traces the code that asks, be it for mixtrain, for Keras or for the user.

    JAX has no public word for this that costs no operation; tests/backend/test_trace.py fails if the name moves.
    """
    return not core.trace_state_clean()


def traces() -> tuple[Any, ...]:
    """Return the functions that are being compiled here, the innermost first; none outside of compilation.

    Each can be referred to weakly.
    """
    return open_traces()


def has_results(trace: Any) -> bool:
    """Whether a function of `traces` was compiled to its end."""
    return bool(trace.finished)


def as_written(function: F) -> F:
    """Return the function: JAX traces every function as it is written."""
    return function
