"""Compile functions to a plain graph or with XLA."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import tensorflow as tf

from mixtrain import context
from mixtrain.backend.info import DeviceInfo, JitChoice
from mixtrain.backend.tensorflow.custom_gradients import custom_gradients_with_graph
from mixtrain.backend.tensorflow.direct import DirectCall
from mixtrain.backend.tensorflow.failure import explain_refusal
from mixtrain.backend.tensorflow.variables import initializing_eagerly
from mixtrain.dtype import DType, bfloat16, float16

_log = logging.getLogger("mixtrain")
# Whether eager code compiles each operation for each shape.
EAGER_COMPILES: Final = False
# Whether a compiled function becomes a part of the compiled function that calls it.
INLINES_COMPILED: Final = False
# Raised by TensorFlow for a function that XLA cannot compile, and for other reasons.
REFUSALS: Final = (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError, tf.errors.InternalError)


def choose_jit(
    dtypes: Collection[DType], device: DeviceInfo, compilable: bool = True, products: bool = False
) -> JitChoice:
    # Based on measurements on CPU: TensorFlow emulates float16 convolutions and matrix products there (118-140 ms a
    # LeNet-5 step, 5 ms with XLA), while float32 and bfloat16 have oneDNN kernels that XLA does not use (3.2 ms, with
    # XLA 7.3 ms). Where all products are computed by `product`, float16 uses those kernels too.
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
        return JitChoice(True, "float16 on CPU has fast kernels only in XLA", may_fall_back=True)
    if device.kind == "CPU" and bfloat16 in dtypes:
        return JitChoice(False, "bfloat16 on CPU has oneDNN kernels in the plain graph")
    return JitChoice(False, f"the plain graph suits {', '.join(sorted(dtypes)) or 'float32'} on {device.kind}")


def is_tracing() -> bool:
    return not tf.executing_eagerly()


@contextlib.contextmanager
def eager_scope() -> Iterator[None]:
    with tf.init_scope(), initializing_eagerly():
        yield


def compile_function(function: Callable[..., Any], *, choice: JitChoice) -> Callable[..., Any]:
    if not context.graph_mode():
        return function
    log_choice(choice)
    if not choice.jit:
        return graph_function(function)
    return _CompiledByXla(function, choice)


def log_choice(choice: JitChoice) -> None:
    """Log how a function is compiled, and why."""
    _log.info("compile: XLA %s (%s)", "on" if choice.jit else "off", choice.reason)


class Compilation:
    """A function compiled with XLA if chosen, and to a plain graph once XLA has refused it.

    Args:
        make: Takes whether to use XLA; returns the compiled function, or any object that uses it.
        choice: How to compile.

    Attributes:
        compiled: The current result of `make`.
        untried: Whether XLA is chosen and has neither compiled nor refused the function yet.

    Example:
        >>> compilation = Compilation(lambda jit: graph_function(lambda x: x + 1, jit=jit), JitChoice(False, "example"))
        >>> compilation.run(lambda compiled: compiled(tf.constant(1))).numpy().item()
        2
    """

    def __init__(self, make: Callable[[bool], Any], choice: JitChoice) -> None:
        self._make = make
        self._choice = choice
        self.compiled = make(choice.jit)
        self.untried = choice.jit

    def run(self, call: Callable[[Any], Any]) -> Any:
        """Return ``call(compiled)``; if XLA refuses the function, use the plain graph from then on.

        XLA refuses a function before any of it has run.

        Args:
            call: Takes `compiled` and calls it once; where it fails, it has written nothing.

        Returns:
            The result of `call`.

        Raises:
            ValueError: XLA refused the function, and the user had requested XLA.
        """
        try:
            result = call(self.compiled)
        except REFUSALS as error:
            with self.fallback(error) as plain:
                return call(plain)
        self.untried = False
        return result

    @contextlib.contextmanager
    def fallback(self, error: Exception) -> Iterator[Any]:
        """Yield the plain graph in place of what XLA refused, and keep it unless it fails too.

        Args:
            error: The error of a call.

        Raises:
            Exception: The error, if it is not a refusal.
            ValueError: XLA refused the function, and the user had requested XLA.
        """
        if not self._choice.jit or is_tracing():
            raise error
        layer, reason = explain_refusal(error.message)  # type: ignore[attr-defined]
        refused = f"XLA does not compile {layer or 'the function'}: {reason}"
        if not self._choice.may_fall_back:
            raise ValueError(
                f"{self._choice.reason}: expected operations that XLA compiles; got, from TensorFlow: {refused}. "
                'Write set_context(jit_level="auto"), and jit without jit_level: the plain graph is then taken '
                "where XLA has no way."
            ) from error
        plain = self._make(False)
        yield plain  # If the function or its arguments are wrong, the caller's block raises here.
        self.compiled, self._choice, self.untried = plain, JitChoice(False, refused), False
        log_choice(self._choice)


class _CompiledByXla:
    """A function compiled by XLA, or to a plain graph where XLA refuses it."""

    def __init__(self, function: Callable[..., Any], choice: JitChoice) -> None:
        self._compilation = Compilation(lambda jit: graph_function(function, jit=jit), choice)

    def __call__(self, *args: Any) -> Any:
        return self._compilation.run(lambda compiled: compiled(*args))

    def get_concrete_function(self, *args: Any) -> Any:
        """Trace the current function for arguments, like a `tf.function`."""
        return self._compilation.compiled.get_concrete_function(*args)

    def experimental_get_tracing_count(self) -> int:
        """Return the number of traces of the current function, like a `tf.function`."""
        return trace_count(self._compilation.compiled)


def graph_function(function: Callable[..., Any], *, jit: bool = False, inline: bool = False) -> Callable[..., Any]:
    """Compile `function` to a `tf.function`.

    Args:
        function: The function to compile.
        jit: Whether XLA compiles it.
        inline: Whether it is inlined where a graph calls it, which saves the call. The caller then affects which of its
            operations are fused, and so the last bit of its results.
    """
    # TensorFlow counts traces by a function's code object and warns of many, and every Model of a process runs the same
    # code. A partial has no code object and is counted by itself.
    return tf.function(
        functools.partial(_traced, function),
        jit_compile=jit,
        autograph=False,
        experimental_attributes={"_noinline": not inline},
    )


def _traced(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with custom_gradients_with_graph():
        return function(*args, **kwargs)


def called_directly(compiled: Callable[..., Any]) -> Callable[..., Any]:
    return DirectCall(compiled) if hasattr(compiled, "get_concrete_function") else compiled


def trace_for(compiled: Callable[..., Any], *args: Any) -> None:
    trace = getattr(compiled, "get_concrete_function", None)
    if trace is not None:
        trace(*args)


def trace_count(compiled: Callable[..., Any]) -> int:
    counter = getattr(compiled, "experimental_get_tracing_count", None)
    return int(counter()) if counter is not None else 0
