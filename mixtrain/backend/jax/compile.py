"""How a function becomes one compiled call: JAX compiles with XLA alone."""

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
# Whether code that is not compiled as a whole is compiled operation by operation, each for each shape.
EAGER_COMPILES: Final = True
# Whether a compiled function that another one calls is compiled as a part of it.
INLINES_COMPILED: Final = True


def choose_jit(
    dtypes: Collection[DType], device: DeviceInfo, compilable: bool = True, products: bool = False
) -> JitChoice:
    """Return how a function is compiled: by XLA, whatever it computes in; JAX has no other way.

    Args:
        dtypes: The formats that layers compute in.
        device: The device in use.
        compilable: Whether XLA has every operation of the layers; on JAX layers have no others.
        products: Whether the layers multiply by `product` alone.
    """
    return JitChoice(True, f"JAX compiles {', '.join(sorted(dtypes)) or 'float32'} for {device.kind} by XLA")


def is_tracing() -> bool:
    """Whether the code that asks runs inside a function that is being compiled."""
    return is_being_traced()


def outside_graph() -> contextlib.AbstractContextManager[Any]:
    """Run what is inside at once, even while a function is compiled: to make variables that outlive the trace."""
    return outside_scopes()


def compile_function(function: Callable[..., Any], *, choice: JitChoice) -> Callable[..., Any]:
    """Return `function` as one compiled call, or as it is in PYNATIVE_MODE.

    Args:
        function: Takes and returns structures of tensors; writes variables by `assign`.
        choice: What `choose_jit` returned, for the log.

    Returns:
        The compiled function; `trace_count` tells how often it was traced.
    """
    if not context.graph_mode():
        return function
    _log.info("compile: XLA %s (%s)", "on" if choice.jit else "off", choice.reason)
    return Stateful(function, wrap=with_fast_windows) if describe_device().kind == "CPU" else Stateful(function)


def called_directly(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of `compile_function` as one that takes less time to call; on JAX there is no shorter way.

    Args:
        compiled: Takes tensors and returns a tuple of tensors; nothing differentiates through it.
    """
    return compiled


def trace_for(compiled: Callable[..., Any], *args: Any) -> None:
    """Trace a compiled function for arguments, as a call with them would, without running it."""
    if isinstance(compiled, Stateful):
        compiled.values_to_write(*args)


def trace_count(compiled: Callable[..., Any]) -> int:
    """Return how often a compiled function was traced; 0 for one that runs eagerly."""
    return int(getattr(compiled, "traces", 0))
