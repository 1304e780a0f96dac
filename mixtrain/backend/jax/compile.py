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
    """Return the choice of XLA, the only compiler of JAX.

    Args:
        dtypes: The compute dtypes of the layers.
        device: The device in use.
        compilable: Whether XLA has every operation of the layers; always so on JAX.
        products: Whether all products of the layers are computed by `product`.
    """
    return JitChoice(True, f"JAX compiles {', '.join(sorted(dtypes)) or 'float32'} for {device.kind} by XLA")


def is_tracing() -> bool:
    """Whether the caller runs inside a function that is being traced."""
    return is_being_traced()


def eager_scope() -> contextlib.AbstractContextManager[Any]:
    """Run the code inside eagerly, even in a trace: to create variables that outlive the trace."""
    return outside_scopes()


def compile_function(function: Callable[..., Any], *, choice: JitChoice) -> Callable[..., Any]:
    """Compile `function`; return it unchanged in PYNATIVE_MODE.

    Args:
        function: Takes and returns structures of tensors; writes variables by `assign`.
        choice: What `choose_jit` returned, for the log.

    Returns:
        The compiled function; `trace_count` returns the number of its traces.
    """
    if not context.graph_mode():
        return function
    _log.info("compile: XLA %s (%s)", "on" if choice.jit else "off", choice.reason)
    return Stateful(function, wrap=with_fast_windows) if describe_device().kind == "CPU" else Stateful(function)


def called_directly(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of `compile_function` with less overhead per call; on JAX it is the function itself.

    Args:
        compiled: Takes tensors and returns a tuple of tensors; nothing differentiates through it.
    """
    return compiled


def trace_for(compiled: Callable[..., Any], *args: Any) -> None:
    """Trace a compiled function for arguments without running it."""
    if isinstance(compiled, Stateful):
        compiled.values_before(*args)


def trace_count(compiled: Callable[..., Any]) -> int:
    """Return the number of traces of a compiled function; 0 for one that runs eagerly."""
    return int(getattr(compiled, "traces", 0))
