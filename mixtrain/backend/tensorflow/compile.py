"""Compile functions to a plain graph or with XLA, and the functions that are being traced."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import tensorflow as tf

from mixtrain import execution
from mixtrain.backend.info import DeviceInfo, JitChoice
from mixtrain.backend.tensorflow.branches import call_with_branches
from mixtrain.backend.tensorflow.custom_gradients import custom_gradients_with_graph
from mixtrain.backend.tensorflow.device import describe_device
from mixtrain.backend.tensorflow.failure import explain_refusal
from mixtrain.backend.tensorflow.tensor import initializing_eagerly
from mixtrain.dtype import DType, bfloat16, float16, float32, float64
from mixtrain.typing import Tensor

EAGER_COMPILES: Final = False
INLINES_COMPILED: Final = False
WRITES_AT_END: Final = False
# Raised by TensorFlow for a function that XLA cannot compile, and for other reasons.
REFUSALS: Final = (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError, tf.errors.InternalError)
_FLOATS: Final = {tf.as_dtype(dtype).as_datatype_enum: dtype for dtype in (float16, bfloat16, float32, float64)}


def choose_jit(
    dtypes: Collection[DType], device: DeviceInfo, compilable: bool = True, products: bool = False
) -> JitChoice:
    # Based on measurements on CPU: TensorFlow emulates float16 convolutions and matrix products there (118-140 ms a
    # LeNet-5 step, 5 ms with XLA), while float32 and bfloat16 have oneDNN kernels that XLA does not use (3.2 ms, with
    # XLA 7.3 ms). Where all products are computed by `product`, float16 uses those kernels too.
    level = execution.current.jit_level
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
    if not execution.current.graph_mode:
        return function
    choice.log()
    if not choice.jit:
        return graph_function(function)
    return Compilation(lambda jit: graph_function(function, jit=jit), choice)


class Compilation:
    """A function compiled with XLA if chosen, and to a plain graph once XLA has refused it.

    `make`: Takes whether to use XLA; returns the compiled function, or any object that uses it.

    Example:
        >>> compilation = Compilation(lambda jit: graph_function(lambda x: x + 1, jit=jit), JitChoice(False, "example"))
        >>> compilation.run(lambda compiled: compiled(tf.constant(1))).numpy().item()
        2
    """

    def __init__(self, make: Callable[[bool], Any], choice: JitChoice) -> None:
        self._make, self._choice = make, choice
        self.compiled = make(choice.jit)  # The current result of `make`.
        self.untried = choice.jit  # Whether XLA is chosen and has neither compiled nor refused the function yet.

    def run(self, call: Callable[[Any], Any]) -> Any:
        """Return ``call(compiled)``; if XLA refuses the function, use the plain graph from then on.

        XLA refuses a function before any of it has run. `call`: Calls `compiled` once.

        Raises: ValueError if XLA refused the function, and the user had requested XLA.
        """
        try:
            result = call(self.compiled)
        except REFUSALS as error:
            with self.fallback(error) as plain:
                return call(plain)
        self.untried = False
        return result

    def __call__(self, *args: Any) -> Any:
        return self.run(lambda compiled: compiled(*args))

    def get_concrete_function(self, *args: Any) -> Any:
        """Trace the current function for arguments, like a `tf.function`."""
        return self.compiled.get_concrete_function(*args)

    def experimental_get_tracing_count(self) -> int:
        """Return the number of traces of the current function, like a `tf.function`."""
        return trace_count(self.compiled)

    @contextlib.contextmanager
    def fallback(self, error: Exception) -> Iterator[Any]:
        """Yield the plain graph in place of what XLA refused with an error, and keep it unless it fails too.

        Raises: The error itself if it is not a refusal. ValueError if XLA refused it and the user requested XLA.
        """
        if not self._choice.jit or is_tracing():
            raise error
        layer, reason = explain_refusal(error.message)  # type: ignore[attr-defined]
        refused = f"XLA does not compile {layer or 'the function'}: {reason}"
        if not self._choice.may_fall_back:
            raise ValueError(
                f"{self._choice.reason}: expected operations that XLA compiles; got, from TensorFlow: {refused}. "
                'Write set_context(jit_level="auto"), jit without jit_level, or model.compile without jit_compile: the '
                "plain graph is then taken where XLA has no way."
            ) from error
        plain = self._make(False)
        yield plain  # If the function or its arguments are wrong, the caller's block raises here.
        self.compiled, self._choice, self.untried = plain, JitChoice(False, refused), False
        self._choice.log()


def graph_function(function: Callable[..., Any], *, jit: bool = False, inline: bool = False) -> Callable[..., Any]:
    """Compile `function` to a `tf.function`.

    `jit`: Whether XLA compiles it. `inline`: Whether it is inlined where a graph calls it, which saves the call. The
    caller then affects which of its operations are fused, and so the last bit of its results.
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


def never_cached(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return it as it is: only its own `tf.function` keeps traces of it."""
    return function


def trace_for(compiled: Callable[..., Any], *args: Any) -> None:
    trace = getattr(compiled, "get_concrete_function", None)
    if trace is not None:
        trace(*args)


def trace_count(compiled: Callable[..., Any]) -> int:
    counter = getattr(compiled, "experimental_get_tracing_count", None)
    return int(counter()) if counter is not None else 0


def compile_once(function: Callable[..., Any], *, jit: bool | None = None) -> Callable[..., Any]:
    compilations: list[Compilation] = []

    def call(*tensors: Tensor) -> Any:
        if not compilations:
            plain = graph_function(function)
            choice = JitChoice(jit, 'jit(jit_level="O1")') if jit is not None else _choice(plain, tensors)
            compilations.append(Compilation(lambda jit: graph_function(function, jit=True) if jit else plain, choice))
        return compilations[0](*tensors)

    return functools.partial(call_with_branches, call)


def _choice(plain: Any, tensors: tuple[Any, ...]) -> JitChoice:
    graph = plain.get_concrete_function(*tensors).graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    types = {attribute.type for node in nodes for attribute in node.attr.values()}
    dtypes: set[DType] = {_FLOATS[number] for number in types if number in _FLOATS}
    return choose_jit(dtypes or {float32}, describe_device())


def traces() -> tuple[Any, ...]:
    graphs: list[Any] = []
    if not tf.executing_eagerly():
        graph: Any = tf.compat.v1.get_default_graph()
        while hasattr(graph, "outer_graph"):
            graphs.append(graph)
            graph = graph.outer_graph
    return tuple(graphs)


def value_scope() -> Any:
    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def has_results(trace: Any) -> bool:
    return bool(trace.outputs)


def without_autograph(function: Callable[..., Any]) -> Callable[..., Any]:
    return tf.autograph.experimental.do_not_convert(function)  # type: ignore[no-any-return]


# The fastest call of a traced function, and the function, whose captured inputs follow its arguments.
_Call = tuple[Callable[..., Any], Any]


class DirectCall:
    """A `tf.function` of tensors that returns a tuple of tensors, without most of its overhead in Python.

    TensorFlow binds arguments to a signature, hashes types and searches its functions in each call, which takes longer
    than a small step. Calls inside another function are still made by TensorFlow.

    `compiled`: The `tf.function`.

    Example:
        >>> double = DirectCall(tf.function(lambda x: (2 * x,), autograph=False))
        >>> [double(tf.constant(x))[0].numpy().item() for x in (1.0, 2.0, 3.0)]
        [2.0, 4.0, 6.0]
    """

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        # By signature; None if only TensorFlow's own call is possible.
        self._calls: dict[Any, _Call | None] = {}

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        if not tf.executing_eagerly():
            return self.compiled(*args)
        try:
            signature = tuple([(value.dtype, value.shape) for value in args])
        except AttributeError:  # A column of several parts.
            return self.compiled(*args)
        return self._call(signature, args, args)

    def of_iterator(self, iterator: Any, *args: Any) -> Any:
        """Call the function, which takes an iterator first."""
        resources = tf.nest.flatten(iterator, expand_composites=True)
        return self._call(str(iterator.element_spec), (iterator, *args), (*resources, *args))

    def experimental_get_tracing_count(self) -> int:
        """Return the number of traces, like a `tf.function`."""
        return int(self.compiled.experimental_get_tracing_count())

    def _call(self, signature: Any, args: tuple[Any, ...], flat: tuple[Any, ...]) -> Any:
        """Call the function with arguments of a signature, `flat` being the arguments as tensors."""
        cached = self._calls.get(signature)  # Once: hashing TensorFlow's shapes takes as long as all else here.
        if cached is not None:
            call, traced = cached
            return tuple(call(*flat, *traced.captured_inputs))
        result = self.compiled(*args)
        if signature not in self._calls:
            self._calls[signature] = self._fastest_call(args, flat)
        return result

    def _fastest_call(self, args: tuple[Any, ...], flat: tuple[Any, ...]) -> _Call | None:
        """Return the fastest call for the signature of arguments with which the function was called."""
        if not all(isinstance(value, tf.Tensor) for value in flat):
            return None
        traced = self.compiled.get_concrete_function(*args)
        results = traced.structured_outputs
        call = getattr(traced.inference_fn, "call_flat", None)
        is_flat = isinstance(results, tuple) and all(isinstance(value, tf.Tensor) for value in results)
        if call is None or not is_flat or len(results) != len(traced.outputs):
            return None
        return call, traced
