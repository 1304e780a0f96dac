"""The functions that are being traced around the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from jax._src import core

from mixtrain.backend.jax.state import open_traces

F = TypeVar("F", bound=Callable[..., Any])


def is_being_traced() -> bool:
    """Whether JAX traces the caller, for mixtrain, Keras or the user.

    JAX has no public function for this that costs no operation; tests/backend/test_trace.py fails if the name changes.
    """
    return not core.trace_state_clean()


def traces() -> tuple[Any, ...]:
    """Return the functions that are being traced in this thread, the innermost first.

    Each supports weak references.
    """
    return open_traces()


def value_scope() -> Any:
    """Return the trace that operations of the caller belong to.

    Tensors of a loop or a branch cannot be used outside of it: compare by ``is``.
    """
    return core.trace_ctx.trace


def has_results(trace: Any) -> bool:
    """Whether the trace of a function of `traces` ran to its end."""
    return bool(trace.finished)


def without_autograph(function: F) -> F:
    """Return the function unchanged: JAX traces every function as it is written."""
    return function
