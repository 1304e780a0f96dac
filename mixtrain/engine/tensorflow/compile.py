"""How a function becomes one compiled call: plain graph or XLA."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Collection
from typing import Any

import tensorflow as tf

from mixtrain import context
from mixtrain.dtype import DType, bfloat16, float16
from mixtrain.engine.facts import DeviceFacts, JitChoice

_log = logging.getLogger("mixtrain")


def choose_jit(
    dtypes: Collection[DType], device: DeviceFacts, compilable: bool = True, products: bool = False
) -> JitChoice:
    """Decide between XLA and the plain graph.

    The rule is from measurements on CPU: TensorFlow has no float16 convolution or matmul kernels of its own there and
    emulates them (118-140 ms a LeNet-5 step, 5 ms with XLA), while float32 and bfloat16 have oneDNN kernels that XLA
    does not use (3.2 ms against 7.3). Where all products go through `product`, those kernels serve float16 too.

    Args:
        dtypes: The formats that layers compute in.
        device: The device in use.
        compilable: Whether XLA has every operation of the layers.
        products: Whether the layers multiply by `product` alone.

    Returns:
        The choice and its reason; `set_context(jit_level=...)` overrides it.
    """
    level = context.get_context("jit_level")
    if level != "auto":
        return JitChoice(level != "O0", f'set_context(jit_level="{level}")')
    if device.kind == "TPU":
        return JitChoice(True, "a TPU runs only XLA programs")
    if not compilable:
        return JitChoice(False, "a layer has operations that XLA lacks")
    if device.kind == "CPU" and float16 in dtypes and products:
        return JitChoice(False, "float16 on CPU is multiplied by the float32 kernels of the plain graph")
    if device.kind == "CPU" and float16 in dtypes:
        return JitChoice(True, "float16 on CPU has fast kernels only in XLA")
    if device.kind == "CPU" and bfloat16 in dtypes:
        return JitChoice(False, "bfloat16 on CPU has oneDNN kernels in the plain graph")
    return JitChoice(False, f"the plain graph suits {', '.join(sorted(dtypes)) or 'float32'} on {device.kind}")


def is_tracing() -> bool:
    """Say whether the code that asks runs inside a function that is being compiled."""
    return not tf.executing_eagerly()


def outside_graph() -> contextlib.AbstractContextManager[Any]:
    """Run what is inside at once, even while a function is compiled: to make variables that outlive the trace."""
    return tf.init_scope()  # type: ignore[no-any-return]


def compile_function(function: Callable[..., Any], *, choice: JitChoice) -> Callable[..., Any]:
    """Return `function` as one compiled call, or as it is in PYNATIVE_MODE.

    Args:
        function: Takes and returns structures of tensors; writes variables by `assign`.
        choice: Whether to use XLA.

    Returns:
        The compiled function; `trace_count` tells how often it was traced.
    """
    if not context.graph_mode():
        return function
    _log.info("compile: XLA %s (%s)", "on" if choice.jit else "off", choice.reason)
    return graph_function(function, jit=choice.jit)


def graph_function(function: Callable[..., Any], *, jit: bool = False) -> Callable[..., Any]:
    """Return `function` as a compiled call of the engine, with or without XLA."""
    # TensorFlow counts traces by a function's code and warns of many; the same lines serve every Model of a process.
    # A partial has no code of its own, and is counted by itself.
    return tf.function(
        functools.partial(function),
        jit_compile=jit,
        autograph=False,
        # Called by another, as a step is by a loop, it is optimised by itself: else which operations are fused, and so
        # the last bit of its numbers, would depend on where it is called from.
        experimental_attributes={"_noinline": True},
    )


def trace_count(compiled: Callable[..., Any]) -> int:
    """Return how often a compiled function was traced; 0 for one that runs eagerly."""
    counter = getattr(compiled, "experimental_get_tracing_count", None)
    return int(counter()) if counter is not None else 0
