"""Conversion of mixtrain's Tensors to backend tensors and back, at the boundary of user code and library code.

Library code computes on backend tensors; users see `mixtrain.Tensor`. Each thread is in one of three modes: outside of
any network, in code of a user's network (`tensors`), or in library code (`backend`).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal

import keras
import numpy as np

from mixtrain import backend, checks, execution
from mixtrain.typing import BackendTensor, Tensor, TensorLike, Tree

Mode = Literal["outside", "tensors", "backend"]


class _State(threading.local):
    mode: Mode = "outside"
    compiling: bool = False  # Whether `jit` traces a function.
    call: int = 0  # Number of the compiled call of user code that runs; 0 outside.
    written: list[tuple[Any, BackendTensor]] = []  # What it wrote to: Tensors older than it, and what they held.
    in_place: list[Any] = []  # The Tensors that it wrote to in place.
    without_gradients: bool = False  # Whether results are constants to whoever differentiates.


_state = _State()
_calls = itertools.count(1)


class UserTensor:
    """Base of the tensors that users see: `mixtrain.Tensor` and `mixtrain.Parameter`."""

    __slots__ = ()

    # The backend tensor, or a channels-last view of one.
    content: BackendTensor


def is_any_tensor(value: Any) -> bool:
    """Whether `value` is a Tensor, a Parameter, a backend tensor or a Keras variable."""
    return isinstance(value, (*backend.TENSOR_TYPES, keras.Variable))


def tensor(where: str, value: TensorLike) -> Tensor:
    """Return `value` as a tensor; Python floats give float32.

    Raises:
        TypeError: It cannot become one.
    """
    if isinstance(value, backend.TENSOR_TYPES):
        return value
    if isinstance(value, (np.ndarray, np.generic, keras.Variable)):
        return backend.to_tensor(value)
    if isinstance(value, (list, tuple)) and any(backend.is_tensor(item) for item in value):
        return keras.ops.stack([tensor(where, item) for item in value])
    try:
        array = np.asarray(value)
    except ValueError:  # A list whose parts have several shapes.
        array = np.array(None)
    if array.dtype.kind not in "biufc":
        raise checks.fail_type(where, "a Tensor, NumPy array or number was needed", value, "mixtrain.Tensor([1.0])")
    return backend.to_tensor(array.astype(np.float32) if array.dtype == np.float64 else array)


def mode() -> Mode:
    """Return the mode of this thread."""
    return _state.mode


@contextlib.contextmanager
def in_mode(mode: Mode) -> Iterator[None]:
    """Run a block in a mode."""
    previous, _state.mode = _state.mode, mode
    try:
        yield
    finally:
        _state.mode = previous


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Run a block in which nothing shares memory, as `jit` traces a function."""
    previous, _state.compiling = _state.compiling, True
    try:
        with _undoing_writes():
            yield
    finally:
        _state.compiling = previous


@contextlib.contextmanager
def _undoing_writes() -> Iterator[None]:
    """Run a compiled call; Tensors that are older than it are then as they were, as constants of MindSpore's graphs."""
    outer = _state.call, _state.written, _state.in_place, _state.without_gradients
    # What is compiled may be called with gradients later: its results become constants, not what it computes.
    _state.call, _state.written, _state.in_place, _state.without_gradients = next(_calls), [], [], False
    try:
        yield
    finally:
        for tensor, content in reversed(_state.written):
            tensor.content = content
        _state.call, _state.written, _state.in_place, _state.without_gradients = outer


@contextlib.contextmanager
def without_gradients() -> Iterator[None]:
    """Run a block whose results are constants to whoever differentiates."""
    previous, _state.without_gradients = _state.without_gradients, True
    try:
        yield
    finally:
        _state.without_gradients = previous


def refuse_without_gradients(where: str) -> None:
    """Raise a RuntimeError for a caller that differentiates in a block `without_gradients`."""
    if _state.without_gradients:
        raise RuntimeError(
            f"{where}: expected a place with gradients; got one in a no_grad block. Write it before the block."
        )


def current_call() -> int:
    """Return the number of the compiled call of user code that runs, 0 outside; a Tensor keeps it as `born`."""
    return _state.call


def note_write(tensor: Any) -> None:
    """Note what a Tensor holds before it is written to."""
    if _state.call and tensor.born != _state.call:
        _state.written.append((tensor, tensor.content))


def note_in_place(tensor: Any) -> None:
    """Note that an operation in place, not an index, writes to a Tensor: if it is an input, the caller sees that."""
    if _state.call:
        _state.in_place.append(tensor)


def inputs_in_place(inputs: Tree) -> dict[int, Any]:
    """Return the inputs of the running compiled call that were written in place, by their number among all."""
    written = {id(tensor) for tensor in _state.in_place}
    return {
        number: tensor for number, tensor in enumerate(keras.tree.flatten(inputs) if written else ())
        if id(tensor) in written
    }


def store_in_place(inputs: Tree, values: dict[int, Any]) -> None:
    """Write to the Tensors among the inputs of a compiled call, by their number, what the call wrote in place."""
    tensors = keras.tree.flatten(inputs) if values else ()
    for number, value in values.items():
        if isinstance(tensors[number], UserTensor):
            tensors[number].store(value)  # type: ignore[attr-defined]


def in_graph() -> bool:
    """Whether a call has the rules of MindSpore's graphs: in what `jit` compiles, and in networks in graph mode.

    Networks have those of PyNative mode where no mode was set, which is MindSpore's default.
    """
    return _state.compiling or _state.mode == "tensors" and execution.current.graph_mode_is_set


def shares_memory() -> bool:
    """Whether a write to a view changes its base: as in MindSpore not in a graph."""
    return not in_graph()


def wants_tensors(*values: Tree) -> bool:
    """Whether results are Tensors: always in a user's network, never in library code; else by the arguments.

    Outside of both, a Tensor or Parameter among the arguments gives Tensors, else a backend tensor gives backend
    tensors; numbers and NumPy arrays alone give Tensors, as in MindSpore.
    """
    if _state.mode != "outside":
        return _state.mode == "tensors"
    tensor = _first_tensor(values)
    return tensor is None or isinstance(tensor, UserTensor)


def _first_tensor(values: Tree) -> Tensor | None:
    """Return the first Tensor in a structure; if there is none, the first backend tensor, or None."""
    backend_tensor = None
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, UserTensor):
            return value
        if isinstance(value, (tuple, list, dict)):
            value = _first_tensor(value)
            if isinstance(value, UserTensor):
                return value
        if backend_tensor is None and isinstance(value, backend.TENSOR_TYPES):
            backend_tensor = value
    return backend_tensor


def unwrap(values: Tree) -> Tree:
    """Return a structure with the contents of its Tensors: backend tensors and channels-last views."""
    if isinstance(values, backend.TensorBase):
        return values.content if isinstance(values, UserTensor) else values
    if isinstance(values, (tuple, list, dict)):
        return _mapped(unwrap, values)
    return values


def to_backend_tensors(values: Tree) -> Tree:
    """Return a structure with backend tensors in place of Tensors and views."""
    if isinstance(values, backend.TensorBase):
        return values.backend_tensor()
    if isinstance(values, (tuple, list, dict)):
        return _mapped(to_backend_tensors, values)
    return values


def to_current_values(values: Tree) -> Tree:
    """Return a structure with the current values, backend tensors, in place of Parameters and Keras variables."""
    if isinstance(values, keras.Variable):
        return backend.to_tensor(values)
    if isinstance(values, (tuple, list, dict)):
        return _mapped(to_current_values, values)
    return values


def to_tensors(values: Tree) -> Tree:
    """Return a structure with Tensors in place of backend tensors and views; constants where results are."""
    if isinstance(values, backend.TENSOR_TYPES):
        if isinstance(values, (UserTensor, keras.KerasTensor)):
            return values
        if _state.without_gradients:
            values = backend.on_layout(keras.ops.stop_gradient, values)
        return backend.public_tensor(values)
    if isinstance(values, (tuple, list, dict)):
        return _mapped(to_tensors, values)
    return values


def to_inputs(values: Tree) -> Tree:
    """Return the arguments of a call with Tensors in place of backend tensors and views; they are never constants."""
    previous, _state.without_gradients = _state.without_gradients, False
    try:
        return to_tensors(values)
    finally:
        _state.without_gradients = previous


def _mapped(function: Callable[[Tree], Tree], values: Tree) -> Tree:
    """Apply a function to the items of a tuple, list or dict; return the same object if none changes."""
    if isinstance(values, dict):
        items = {key: function(value) for key, value in values.items()}
        if all(items[key] is value for key, value in values.items()):
            return values
        return items if type(values) is dict else type(values)(items)
    results = [function(value) for value in values]
    if not any(map(operator.is_not, results, values)):
        return values
    if isinstance(values, list):
        return results
    # A named tuple takes its fields as arguments.
    return type(values)(*results) if hasattr(values, "_fields") else tuple(results)


def library(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a library function for users: it computes on backend tensors and returns what `wants_tensors` says.

    Example:
        >>> import keras
        >>> library(keras.ops.square)(keras.ops.ones(())).shape
        TensorShape([])
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return run_library(function, args, kwargs)

    return call


def run_library(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``function(*args, **kwargs)``, computed on backend tensors; Tensors where the caller wants them."""
    state = _state
    previous = state.mode
    # Every eager operator goes through here, so each extra call costs time. Most have one or two arguments.
    inputs = [*map(unwrap, args)]
    if previous == "backend":
        return function(*inputs, **(unwrap(kwargs) if kwargs else kwargs))
    takes_tensor = bool(args) and isinstance(args[0], UserTensor)
    returns_tensors = takes_tensor or previous == "tensors" or wants_tensors(args, kwargs)
    state.mode = "backend"
    try:
        result = function(*inputs, **unwrap(kwargs)) if kwargs else function(*inputs)
    finally:
        state.mode = previous
    if not returns_tensors:
        return result
    # A function that returns its argument unchanged returns the same Tensor object, where they share memory.
    return args[0] if takes_tensor and result is inputs[0] and shares_memory() else to_tensors(result)


def run_users(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, as_compiled: bool = False
) -> Any:
    """Return ``function(*args, **kwargs)`` of a user's network, which gets Tensors.

    `as_compiled`: Whether it writes to its arguments only what a compiled call would, as also in graph mode.
    """
    previous = _state.mode
    returns_tensors = previous == "tensors" or wants_tensors(args, kwargs)
    outermost = not _state.call and previous != "tensors"
    compiled = outermost and (as_compiled or execution.current.graph_mode_is_set or backend.is_tracing())
    if compiled:
        given = args, kwargs
        args, kwargs = unwrap(args), unwrap(kwargs)  # What a compiled network writes by index, no caller sees.
    args, kwargs = to_inputs((args, kwargs))
    _state.mode = "tensors"
    try:
        with _undoing_writes() if compiled else contextlib.nullcontext():
            result = function(*args, **kwargs)
            if compiled:
                result = unwrap(result)
                in_place = {number: tensor.content for number, tensor in inputs_in_place((args, kwargs)).items()}
    finally:
        _state.mode = previous
    if compiled:
        store_in_place(given, in_place)
    return to_tensors(result) if returns_tensors else unwrap(result)
