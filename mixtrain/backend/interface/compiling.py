"""Compiled functions: traces, branches, Python inside them, errors and files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from mixtrain.backend.info import DeviceInfo, JitChoice
from mixtrain.dtype import DType
from mixtrain.typing import Shape, Tensor, Tree, Variable

# Whether eager code compiles each operation for each shape.
EAGER_COMPILES: bool
# Whether a compiled function becomes a part of the compiled function that calls it.
INLINES_COMPILED: bool
# Whether a compiled function writes variables after it has computed everything.
WRITES_AT_END: bool
# What an eager operation raises, beside Python's own errors, for values, shapes or dtypes that it does not support.
VALUE_ERRORS: tuple[type[Exception], ...]

def choose_jit(
    dtypes: Collection[DType], device: DeviceInfo, compilable: bool = True, products: bool = False
) -> JitChoice:
    """Decide between XLA and the plain graph, where the backend has both; `set_context(jit_level=...)` overrides it.

    `dtypes`: The compute dtypes of the layers. `compilable`: Whether XLA has every operation of the layers. `products`:
    Whether all products of the layers are computed by `product`.
    """

def is_tracing() -> bool:
    """Whether the caller runs inside a function that is being traced."""

def eager_scope() -> AbstractContextManager[None]:
    """Run the code inside eagerly, even in a trace: to create variables that outlive the trace."""

def compile_function(function: Callable[..., Any], *, choice: JitChoice) -> Callable[..., Any]:
    """Compile a function of tensors that writes variables by `assign`; return it as it is in PYNATIVE_MODE."""

def called_directly(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of `compile_function` with less overhead per call; itself where it is not compiled.

    `compiled`: Takes tensors and returns a tuple of tensors; nothing differentiates through it.
    """

def never_cached(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as one that each caller traces again, as it does a bound method.

    The trace of one that stays the same may have values of an earlier one, as constants without a gradient.
    """

def trace_for(compiled: Callable[..., Any], *args: Any) -> None:
    """Trace a compiled function for arguments without running it."""

def trace_count(compiled: Callable[..., Any]) -> int:
    """Return the number of traces of a compiled function; 0 for one that runs eagerly."""

def compile_once(function: Callable[..., Any], *, jit: bool | None = None) -> Callable[..., Any]:
    """Compile a function of tensors of fixed shapes to a structure of tensors, in every mode.

    It is traced in its first call, and again if XLA is needed or refuses it. `jit`: Whether XLA compiles it; None to
    decide by `choose_jit` from the dtypes in the function's graph.
    """

def traces() -> tuple[Any, ...]:
    """Return the functions that are being traced in this thread, the innermost first.

    A branch or a loop inside a function may be a function of its own. Each supports weak references.
    """

def value_scope() -> Any:
    """Return the graph or trace that operations of the caller belong to; None in eager code of TensorFlow.

    Tensors of a loop or a branch cannot be used outside of it: compare by ``is``.
    """

def has_results(trace: Any) -> bool:
    """Whether the trace of a function of `traces` ran to its end and has outputs."""

def without_autograph(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that a user's ``@tf.function`` traces without AutoGraph, like all functions that it calls.

    AutoGraph would rewrite their source to let tensors decide branches, which takes tens of seconds for no effect.
    """

def with_branches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose ``if``, ``while`` and ``for`` may depend on tensors when it is compiled.

    Only its own code is concerned, not that of functions it calls. It is returned itself where nothing is rewritten.
    """

def branching(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method or function for a call that is being traced, so that a tensor may decide branches in it."""

def call_with_branches(compiled: Callable[..., Any], *args: Any) -> Any:
    """Call a compiled function, in whose code tensors may decide branches, with arguments; return its results.

    Raises: TypeError if a tensor decides a branch where that is not possible, or a layer needs the value of a tensor in
    Python.
    """

def failed_on_a_path(error: BaseException) -> bool:
    """Whether an error of the last compiled call was raised while code was traced that tensors may not reach."""

def tensor_decided() -> bool:
    """Whether Python values may depend on a branch that a tensor decided, and must become tensors."""

def cond(
    predicate: Tensor, on_true: Callable[[], Tree], on_false: Callable[[], Tree], *, writes: Sequence[Variable] = ()
) -> None:
    """Run one of two functions, by a scalar bool tensor, for their writes; their results are not used.

    `writes`: The variables that either function may assign, for a backend that does not detect them.
    """

def write_after(tensor: Tensor, function: Callable[[], None], weights: Sequence[Variable]) -> None:
    """Run a function that updates weights once a tensor has its value, and not at all if computing that fails."""

def call_python(function: Callable[..., None], tensors: Sequence[Tensor]) -> None:
    """Call a Python function for its side effect when this point is reached, in a compiled function too.

    `function`: Takes the tensors' values as NumPy arrays (bfloat16 as float32).
    """

def computed_by_numpy(
    function: Callable[..., Sequence[np.ndarray]], tensors: Sequence[Tensor], shapes: Sequence[Shape],
    dtypes: Sequence[str],
) -> list[Tensor]:
    """Return what a function computes of the values of tensors, in a compiled function too; it has no gradient.

    `function`: Takes arrays and returns as many as there are `shapes` and `dtypes`.
    """

def scan(step: Callable[[Tree, Tree], Tree], initial: Tree, elements: Tree) -> Tree:
    """Run ``state = step(state, element)`` for each slice of `elements` along their first axis.

    The state and the elements are a tensor or a tuple of tensors each.

    Returns: The states after each step, stacked along a new first axis, in the structure of `initial`.
    """

def naming_layers(where: str) -> AbstractContextManager[None]:
    """Convert the backend's errors of values that do not match to a ValueError that names the layer, if it is known.

    `where`: The function that runs the call, for the message.
    """

def error_reason(error: Exception) -> str:
    """Return the reason in the error of an operation, as a clause.

    Example:
        >>> from mixtrain import backend
        >>> backend.error_reason(ValueError("sizes differ: (2,) (5,).\\nSee the documentation."))
        'sizes differ: (2,) (5,)'
    """

def write_saved_model(function: Callable[..., Any], inputs: Sequence[Any], folder: str) -> None:
    """Write a function of tensors as a SavedModel, with the signature ``serving_default``.

    `function`: Takes tensors and returns a tensor or a structure of them, named ``output_0``, ``output_1`` ...
    `inputs`: An example of each input, named ``input_0``, ``input_1`` ...; the size of the first axis is left open if
    the function allows it. `folder`: The folder to write.

    Raises: UnsupportedBackendError if the backend cannot write it.
    """

def write_onnx(function: Callable[..., Any], inputs: Sequence[Any], file: str) -> None:
    """Write a function of tensors as an ONNX model; arguments as in `write_saved_model`.

    Raises: ImportError if tf2onnx or onnx is not installed. UnsupportedBackendError if the backend cannot write it.
    """
