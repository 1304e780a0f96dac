"""Compile functions: JAX always uses XLA."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection
from typing import Any, Final

from mixtrain import context
from mixtrain.backend.info import DeviceInfo, JitChoice
from mixtrain.backend.jax.device import describe_device
from mixtrain.backend.jax.state import Stateful, outside_scopes
from mixtrain.backend.jax.trace import is_being_traced
from mixtrain.backend.jax.windows import with_fast_windows
from mixtrain.dtype import DType

_log = logging.getLogger("mixtrain")
# Whether eager code compiles each operation for each shape.
EAGER_COMPILES: Final = True
# Whether a compiled function becomes a part of the compiled function that calls it.
INLINES_COMPILED: Final = True


def choose_jit(
    dtypes: Collection[DType], device: DeviceInfo, compilable: bool = True, products: bool = False
) -> JitChoice:
    """Return XLA, the only compiler of JAX."""
    return JitChoice(True, f"JAX compiles {', '.join(sorted(dtypes)) or 'float32'} for {device.kind} by XLA")


def is_tracing() -> bool:
    return is_being_traced()


def eager_scope() -> contextlib.AbstractContextManager[Any]:
    return outside_scopes()


def compile_function(function: Callable[..., Any], *, choice: JitChoice) -> Callable[..., Any]:
    """XLA compiles every function: `choice` is for the log."""
    if not context.graph_mode():
        return function
    _log.info("compile: XLA %s (%s)", "on" if choice.jit else "off", choice.reason)
    return Stateful(function, wrap=with_fast_windows) if describe_device().kind == "CPU" else Stateful(function)


def called_directly(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return it as it is: a call has no overhead to save."""
    return compiled


def trace_for(compiled: Callable[..., Any], *args: Any) -> None:
    if isinstance(compiled, Stateful):
        compiled.values_before(*args)


def trace_count(compiled: Callable[..., Any]) -> int:
    return int(getattr(compiled, "traces", 0))
