"""Replacement of Keras's public functions and calls while a thread is inside an autocast, and only then.

Keras has no hook for its operators and layers that is limited to a scope. So the following are replaced while at least
one thread is inside an autocast: the functions in `keras.ops`, `keras.activations` and `keras.losses`, the calls of
`keras.Layer` and `keras.Operation`, and the operators of `keras.Variable`. The first thread to enter installs the
replacements, and the last to leave restores the original objects. Each replacement first checks whether its own thread
is inside; in all other threads it does what the original does.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final

import keras

from mixtrain.autocast.operator_lists import normal, rows
from mixtrain.autocast.state import autocast_in_force, is_symbolic
from mixtrain.compat.pytorch.keras_layers import compute_dtype_of, layer_call, operation_call, operator_call, takes_all

# The operators of `keras.Variable` that do more than promote, and their rows in the table.
_VARIABLE_OPERATORS: Final = {"__matmul__": "matmul", "__rmatmul__": "matmul", "__pow__": "pow", "__rpow__": "pow"}
_CAST: Final = tuple(name for name, kind in rows() if kind != "inputs")
_ABSENT: Final = object()
_MODULES: Final = ("ops", "ops.nn", "ops.numpy", "ops.linalg", "ops.math", "activations", "losses")


class Interposition:
    """The replacements in place, and the number of scopes that need them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._undo: list[tuple[Any, str, Any]] = []
        self._names: set[str] = set()

    def enter(self, names: Iterable[str] = ()) -> None:
        """Enter a scope; the first one installs the replacements.

        Args:
            names: Operators in the lists of the scope, which may have no row in the table.
        """
        with self._lock:
            try:
                if not self._inside:
                    self._replace_classes()
                    self._replace_functions(_CAST)
                self._replace_functions(_spellings(tuple(names)) - self._names)
            except BaseException:
                if not self._inside:
                    self._restore()
                raise
            self._inside += 1

    def leave(self) -> None:
        """Leave a scope; the last one restores everything."""
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._restore()

    def _restore(self) -> None:
        self._names.clear()
        while self._undo:
            owner, name, value = self._undo.pop()
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)

    def _replace_functions(self, names: Iterable[str]) -> None:
        new = tuple(names)
        if not new:
            return
        self._names.update(new)
        for module in _modules():
            functions = vars(module)
            for name in new:
                function = functions.get(name)
                if function is not None and not isinstance(function, type):
                    self._replace(module, name, _replacement(name, function))

    def _replace_classes(self) -> None:
        self._replace(keras.Layer, "__call__", layer_call(keras.Layer.__call__))
        self._replace(keras.Layer, "compute_dtype", _compute_dtype(vars(keras.Layer)["compute_dtype"]))
        self._replace(keras.Layer, "autocast", _autocast())
        self._replace(keras.Operation, "__call__", operation_call(keras.Operation.__call__))
        for name in _VARIABLE_OPERATORS:
            self._replace(keras.Variable, name, _variable_operator(name, getattr(keras.Variable, name)))

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._undo.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)


def _modules() -> list[ModuleType]:
    """Return the public modules with Keras's operators, including the separate ones of `tensorflow.keras`."""
    names = (f"{root}.{module}" for root in ("keras", "keras._tf_keras.keras") for module in _MODULES)
    return [sys.modules[name] for name in names if name in sys.modules]


@functools.cache
def _spellings(names: tuple[str, ...]) -> frozenset[str]:
    """Return Keras's spellings of operators whose names may be spelled in any way."""
    normalized = set(map(normal, names))
    return frozenset(public for module in _modules() for public in vars(module) if normal(public) in normalized)


@functools.cache
def _replacement(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of a function; cached, so that entering a scope is cheap."""
    return operator_call(name, function)


def _cast_operands(row: str, first: Any, other: Any) -> tuple[Any, Any]:
    """Cast the operands of an operator according to its row of the table."""
    state = autocast_in_force()
    if state is not None and not is_symbolic((first, other)):
        (first, other), _ = state.cast(row, (first, other), {})
    return first, other


def _variable_operator(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of an operator of `keras.Variable`; a variable that is cast becomes a tensor."""

    @functools.wraps(original)
    def call(self: Any, other: Any) -> Any:
        first, second = _cast_operands(_VARIABLE_OPERATORS[name], self, other)
        return original(self, second) if first is self else getattr(first, name)(second)

    return call


def _compute_dtype(original: property) -> property:
    """Return the replacement of `keras.Layer.compute_dtype`."""

    def compute_dtype(self: Any) -> Any:
        dtype = compute_dtype_of(self)
        return original.fget(self) if dtype is None else dtype.name  # type: ignore[misc]

    return property(compute_dtype, doc=original.__doc__)


def _autocast() -> property:
    """Return a property over the attribute `autocast` of layers: False during a call that casts nothing."""

    def read(self: Any) -> Any:
        if "autocast" not in vars(self):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute 'autocast'")
        return vars(self)["autocast"] and not takes_all(self)

    def write(self: Any, value: Any) -> None:
        vars(self)["autocast"] = value

    return property(read, write)


INTERPOSITION: Final = Interposition()
