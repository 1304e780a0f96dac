"""Where mixtrain's Tensors become backend tensors and back: the one place that unwraps and wraps.

Library code computes on backend tensors; people who write MindSpore code see `mixtrain.Tensor`. Each thread is in one
of three modes: outside of any network, in code of a user's network (`tensors`), or in library code (`backend`).
"""

from __future__ import annotations

import contextlib
import functools
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal

import keras

from mixtrain import backend

Mode = Literal["outside", "tensors", "backend"]


class _State(threading.local):
    mode: Mode = "outside"


_state = _State()


class TensorLike:
    """What users see as a tensor: `mixtrain.Tensor` and `mixtrain.Parameter`."""

    __slots__ = ()

    # The backend tensor, or a channels-last view of one.
    held: Any


def is_any_tensor(value: Any) -> bool:
    """Whether `value` is a Tensor, a Parameter, a backend tensor or a Keras variable."""
    return isinstance(value, (*backend.TENSOR_TYPES, keras.Variable))


def mode() -> Mode:
    """Return whose code runs in this thread."""
    return _state.mode


@contextlib.contextmanager
def running(mode: Mode) -> Iterator[None]:
    """Run what is inside as code of a user's network, or as library code."""
    before, _state.mode = _state.mode, mode
    try:
        yield
    finally:
        _state.mode = before


def wants_tensors(*values: Any) -> bool:
    """Whether results are Tensors: always in a user's network, never in library code; else as the arguments are.

    Outside of both, a Tensor or a Parameter among the arguments asks for Tensors, a backend tensor for the backend's;
    numbers and NumPy arrays alone are a MindSpore user's.
    """
    if _state.mode != "outside":
        return _state.mode == "tensors"
    found = _first_tensor(values)
    return found is None or isinstance(found, TensorLike)


def _first_tensor(values: Any) -> Any:
    """Return the first Tensor in a structure; if there is none, the first backend tensor, or None."""
    found = None
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, TensorLike):
            return value
        if isinstance(value, (tuple, list, dict)):
            value = _first_tensor(value)
            if isinstance(value, TensorLike):
                return value
        if found is None and isinstance(value, backend.TENSOR_TYPES):
            found = value
    return found


def unwrapped(values: Any) -> Any:
    """Return a structure with what its Tensors hold; channels-last views stay views."""
    if isinstance(values, backend.TensorBase):
        return values.held if isinstance(values, TensorLike) else values
    if isinstance(values, (tuple, list, dict)):
        return _mapped(unwrapped, values)
    return values


def settled(values: Any) -> Any:
    """Return a structure with backend tensors in place of Tensors and views."""
    if isinstance(values, backend.TensorBase):
        return values.backend_tensor()
    if isinstance(values, (tuple, list, dict)):
        return _mapped(settled, values)
    return values


def wrapped(values: Any) -> Any:
    """Return a structure with Tensors in place of backend tensors and views."""
    if isinstance(values, backend.TENSOR_TYPES):
        return values if isinstance(values, (TensorLike, keras.KerasTensor)) else backend.public_tensor(values)
    if isinstance(values, (tuple, list, dict)):
        return _mapped(wrapped, values)
    return values


def _mapped(function: Callable[[Any], Any], values: Any) -> Any:
    """Apply a function to the items of a tuple, list or dict; the same object comes back where none changes."""
    if isinstance(values, dict):
        items = {key: function(value) for key, value in values.items()}
        if all(items[key] is value for key, value in values.items()):
            return values
        return items if type(values) is dict else type(values)(items)
    found = [function(value) for value in values]
    if not any(map(operator.is_not, found, values)):
        return values
    if isinstance(values, list):
        return found
    return type(values)(*found) if hasattr(values, "_fields") else tuple(found)


def library(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the library as users call it: it computes on backend tensors and gives what they want.

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
    before = state.mode
    # In eager code every microsecond counts, and most calls have one argument or two.
    held = [*map(unwrapped, args)]
    if before == "backend":
        return function(*held, **(unwrapped(kwargs) if kwargs else kwargs))
    takes_tensor = bool(args) and isinstance(args[0], TensorLike)
    wants = takes_tensor or before == "tensors" or wants_tensors(args, kwargs)
    state.mode = "backend"
    try:
        result = function(*held, **unwrapped(kwargs)) if kwargs else function(*held)
    finally:
        state.mode = before
    if not wants:
        return result
    # What comes back as it was given is the very Tensor that was given.
    return args[0] if takes_tensor and result is held[0] else wrapped(result)


def run_users(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``function(*args, **kwargs)`` of a user's network: it gets Tensors, library code gets the backend's."""
    before = _state.mode
    wants = before == "tensors" or wants_tensors(args, kwargs)
    args, kwargs = wrapped(args), wrapped(kwargs)
    _state.mode = "tensors"
    try:
        result = function(*args, **kwargs)
    finally:
        _state.mode = before
    return wrapped(result) if wants else unwrapped(result)
