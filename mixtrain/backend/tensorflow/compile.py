"""How a function becomes one compiled call: plain graph or XLA."""

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
from mixtrain.backend.tensorflow.variables import variables_made_at_once
from mixtrain.dtype import DType, bfloat16, float16

_log = logging.getLogger("mixtrain")
# Whether code that is not compiled as a whole is compiled operation by operation, each for each shape.
EAGER_COMPILES: Final = False
# Whether a compiled function that another one calls is compiled as a part of it.
INLINES_COMPILED: Final = False
# What TensorFlow raises for a function that XLA cannot compile, and for much else too.
REFUSALS: Final = (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError, tf.errors.InternalError)


def choose_jit(
    dtypes: Collection[DType], device: DeviceInfo, compilable: bool = True, products: bool = False
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
        return JitChoice(True, "float16 on CPU has fast kernels only in XLA", may_fall_back=True)
    if device.kind == "CPU" and bfloat16 in dtypes:
        return JitChoice(False, "bfloat16 on CPU has oneDNN kernels in the plain graph")
    return JitChoice(False, f"the plain graph suits {', '.join(sorted(dtypes)) or 'float32'} on {device.kind}")


def is_tracing() -> bool:
    """Whether the code that asks runs inside a function that is being compiled."""
    return not tf.executing_eagerly()


@contextlib.contextmanager
def outside_graph() -> Iterator[None]:
    """Run what is inside at once, even while a function is compiled: to make variables that outlive the trace."""
    with tf.init_scope(), variables_made_at_once():
        yield


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
    log_choice(choice)
    if not choice.jit:
        return graph_function(function)
    return _CompiledByXla(function, choice)


def log_choice(choice: JitChoice) -> None:
    """Say in the log how a function is compiled, and why."""
    _log.info("compile: XLA %s (%s)", "on" if choice.jit else "off", choice.reason)


class Compilation:
    """What a function was compiled to: by XLA where that was chosen, by the plain graph once XLA has refused it.

    Args:
        make: Takes whether XLA compiles; returns what is called.
        choice: How to compile.

    Attributes:
        compiled: What `make` returned.
        untried: Whether XLA is to compile the function and has neither done so nor refused it yet.

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
        """Return what `call` returns for what is compiled, in the plain graph from the moment that XLA refuses it.

        XLA refuses a function before anything of it has run.

        Args:
            call: Takes what is compiled, and calls it once; where it fails, it has written nothing.

        Returns:
            What `call` returned.

        Raises:
            ValueError: XLA refused what somebody has asked it to compile.
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
        """Yield the plain graph in place of what XLA refused; it stays, unless it fails too.

        Args:
            error: What a call raised.

        Raises:
            Exception: The error, where it is not such a refusal.
            ValueError: XLA refused what somebody has asked it to compile.
        """
        if not self._choice.jit or is_tracing():
            raise error
        layer, why = explain_refusal(error.message)  # type: ignore[attr-defined]
        refused = f"XLA does not compile {layer or 'the function'}: {why}"
        if not self._choice.may_fall_back:
            raise ValueError(
                f"{self._choice.reason}: expected operations that XLA compiles; got, from TensorFlow: {refused}. "
                'Write set_context(jit_level="auto"), and jit without jit_level: the plain graph is then taken '
                "where XLA has no way."
            ) from error
        plain = self._make(False)
        yield plain  # What is wrong with the function or its arguments, should it be that, is raised here.
        self.compiled, self._choice, self.untried = plain, JitChoice(False, refused), False
        log_choice(self._choice)


class _CompiledByXla:
    """A function compiled by XLA, or in the plain graph where XLA refuses it."""

    def __init__(self, function: Callable[..., Any], choice: JitChoice) -> None:
        self._compilation = Compilation(functools.partial(_graph_of, function), choice)

    def __call__(self, *args: Any) -> Any:
        return self._compilation.run(lambda compiled: compiled(*args))

    def get_concrete_function(self, *args: Any) -> Any:
        """Trace the present compiled function for arguments, as a `tf.function` does."""
        return self._compilation.compiled.get_concrete_function(*args)

    def experimental_get_tracing_count(self) -> int:
        """Return how often the present compiled function was traced, as a `tf.function` does."""
        return trace_count(self._compilation.compiled)


def _graph_of(function: Callable[..., Any], jit: bool) -> Callable[..., Any]:
    return graph_function(function, jit=jit)


def graph_function(
    function: Callable[..., Any], *, jit: bool = False, inline: bool = False
) -> Callable[..., Any]:
    """Return `function` as a compiled call of the backend.

    Args:
        function: What to compile.
        jit: Whether XLA compiles it.
        inline: Whether it becomes a part of what calls it, which saves a call. Which of its operations are fused, and
            so the last bit of its numbers, then depends on where it is called from.
    """
    # TensorFlow counts traces by a function's code and warns of many; the same lines serve every Model of a process.
    # A partial has no code of its own, and is counted by itself.
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
    """Return a function of `compile_function` as one that takes less time to call.

    Args:
        compiled: Takes tensors and returns a tuple of tensors; nothing differentiates through it.

    Returns:
        The function; itself where it is not compiled.
    """
    return DirectCall(compiled) if hasattr(compiled, "get_concrete_function") else compiled


def trace_for(compiled: Callable[..., Any], *args: Any) -> None:
    """Trace a compiled function for arguments, as a call with them would, without running it."""
    trace = getattr(compiled, "get_concrete_function", None)
    if trace is not None:
        trace(*args)


def trace_count(compiled: Callable[..., Any]) -> int:
    """Return how often a compiled function was traced; 0 for one that runs eagerly."""
    counter = getattr(compiled, "experimental_get_tracing_count", None)
    return int(counter()) if counter is not None else 0
