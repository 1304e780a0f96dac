"""How a step becomes one compiled call: plain graph or XLA, one step a call or many."""

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


def choose_jit(dtypes: Collection[DType], device: DeviceFacts, compilable: bool = True) -> JitChoice:
    """Decide between XLA and the plain graph.

    The rule is from measurements on CPU: TensorFlow has no float16 convolution or matmul kernels of its own there and
    emulates them (118-140 ms a LeNet-5 step, 5 ms with XLA), while float32 and bfloat16 have oneDNN kernels that XLA
    does not use (3.2 ms against 7.3).

    Args:
        dtypes: The formats that layers compute in.
        device: The device in use.
        compilable: Whether XLA has every operation of the layers.

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
    return tf.function(function, jit_compile=choice.jit, autograph=False)


def compile_loop(function: Callable[..., tuple[Any, ...]], *, choice: JitChoice) -> Callable[..., tuple[Any, ...]]:
    """Return a call that takes `count` batches from an iterator and runs `function` on each.

    Args:
        function: Takes the columns of a batch and returns a tuple of tensors of fixed shapes.
        choice: Whether the step inside is compiled with XLA.

    Returns:
        ``loop(iterator, count)``; its results are those of `function`, stacked on a new first axis of length `count`.
    """
    if not context.graph_mode():
        return functools.partial(_eager_loop, function)
    step = tf.function(function, jit_compile=choice.jit, autograph=False)

    def loop(iterator: Any, count: Any) -> tuple[Any, ...]:
        first = step(*next(iterator))
        rows = [
            tf.TensorArray(value.dtype, size=count, element_shape=value.shape).write(0, value) for value in first
        ]

        def body(index: Any, *rows: Any) -> tuple[Any, ...]:
            results = step(*next(iterator))
            return (index + 1, *(row.write(index, value) for row, value in zip(rows, results, strict=True)))

        _, *rows = tf.while_loop(
            lambda index, *_: index < count, body, (tf.constant(1), *rows), parallel_iterations=1
        )
        return tuple(row.stack() for row in rows)

    compiled = tf.function(loop, autograph=False)

    def run(iterator: Any, count: int) -> Any:
        return compiled(iterator, tf.constant(count))

    run.compiled = compiled  # type: ignore[attr-defined]
    return run


def _eager_loop(function: Callable[..., tuple[Any, ...]], iterator: Any, count: int) -> tuple[Any, ...]:
    """Run `count` steps one by one, for debugging."""
    rows = [function(*next(iterator)) for _ in range(count)]
    return tuple(tf.stack(column) for column in zip(*rows, strict=True))


def trace_count(compiled: Callable[..., Any]) -> int:
    """Return how often a compiled function was traced; 0 for one that runs eagerly."""
    function = getattr(compiled, "compiled", compiled)
    counter = getattr(function, "experimental_get_tracing_count", None)
    return int(counter()) if counter is not None else 0
