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
    return open_traces()


def value_scope() -> Any:
    return core.trace_ctx.trace


def has_results(trace: Any) -> bool:
    return bool(trace.finished)


def without_autograph(function: F) -> F:
    """Return it as it is: JAX traces every function as it is written."""
    return function
