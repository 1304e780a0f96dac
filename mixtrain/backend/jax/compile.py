"""Compile functions, for which JAX always uses XLA, and the functions that are being traced."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Collection
from typing import Any, Final

from jax._src import core

from mixtrain import execution
from mixtrain.backend.info import DeviceInfo, JitChoice
from mixtrain.backend.jax.branches import call_with_branches
from mixtrain.backend.jax.state import Stateful, outside_scopes
from mixtrain.backend.jax.tracing import now
from mixtrain.backend.jax.windows import with_fast_windows
from mixtrain.dtype import DType

EAGER_COMPILES: Final = True
INLINES_COMPILED: Final = True
WRITES_AT_END: Final = True


def choose_jit(
    dtypes: Collection[DType], device: DeviceInfo, compilable: bool = True, products: bool = False
) -> JitChoice:
    """Return XLA, the only compiler of JAX."""
    return JitChoice(True, f"JAX compiles {', '.join(sorted(dtypes)) or 'float32'} for {device.kind} by XLA")


def is_tracing() -> bool:
    # For mixtrain, Keras or the user. JAX has no public function for this that costs no operation;
    # tests/backend/test_trace.py fails if the name changes.
    return not core.trace_state_clean()


def eager_scope() -> contextlib.AbstractContextManager[Any]:
    return outside_scopes()


def compile_function(function: Callable[..., Any], *, choice: JitChoice) -> Callable[..., Any]:
    """XLA compiles every function: `choice` is for the log."""
    if not execution.current.graph_mode:
        return function
    choice.log()
    return Stateful(function, wrap=with_fast_windows)


def called_directly(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return it as it is: a call has no overhead to save."""
    return compiled


class _NeverCached:
    """A function that no cache finds again: `jax.checkpoint` and `jax.jit` keep traces by the function's hash."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return next(_HASHES)


_HASHES: Final = itertools.count()


def never_cached(function: Callable[..., Any]) -> Callable[..., Any]:
    return _NeverCached(function)


def trace_for(compiled: Callable[..., Any], *args: Any) -> None:
    if isinstance(compiled, Stateful):
        compiled.values_before(*args)


def trace_count(compiled: Callable[..., Any]) -> int:
    return int(getattr(compiled, "traces", 0))


def compile_once(function: Callable[..., Any], *, jit: bool | None = None) -> Callable[..., Any]:
    """XLA compiles every function, whatever `jit` says."""
    return functools.partial(call_with_branches, Stateful(function))


def traces() -> tuple[Any, ...]:
    return tuple(scope.trace for scope in reversed(now.scopes) if scope.trace is not None)


def value_scope() -> Any:
    return core.trace_ctx.trace


def has_results(trace: Any) -> bool:
    return bool(trace.finished)


def without_autograph(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return it as it is: JAX traces every function as it is written."""
    return function
