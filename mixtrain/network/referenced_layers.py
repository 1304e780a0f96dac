"""Layers and variables that a function or network refers to: by children, closures, globals and attributes."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.network.marks import PREFIX
from mixtrain.network.walk import children_of
from mixtrain.typing import Layer

# Objects of these libraries are not searched: they hold no functions and layers of the user.
_LIBRARIES: Final = ("keras", "tensorflow", "jax", "jaxlib", "numpy", "builtins")
_LEAVES: Final = (
    type, types.CodeType, str, bytes, int, float, complex, np.ndarray, np.generic, keras.Variable,
    *backend.TENSOR_TYPES,
)
# Maximum number of objects searched that are not layers.
_MAX_OBJECTS: Final = 10_000


def referenced_layers(roots: Iterable[Any]) -> list[Layer]:
    """Return the Cells, Keras layers and operations that functions or other objects refer to, each once.

    `roots`: Functions, methods, layers, and objects that hold them.

    Example:
        >>> from mixtrain import nn
        >>> net = nn.SequentialCell(nn.Dense(2, 1))
        >>> [type(layer).__name__ for layer in referenced_layers([{"net": net}])]
        ['SequentialCell', 'Dense']
    """
    return [value for value in _referenced(roots) if _is_layer(value)]


def referenced_variables(roots: Iterable[Any]) -> list[keras.Variable]:
    """Return the variables that functions or other objects refer to, each once: weights, statistics, random states.

    `roots`: As for `referenced_layers`.

    Example:
        >>> noise = keras.layers.GaussianNoise(0.1)
        >>> [tuple(variable.shape) for variable in referenced_variables([noise, {"seen": keras.Variable([1.0])}])]
        [(2,), (1,)]
    """
    result: dict[int, keras.Variable] = {}
    for value in _referenced(roots):
        variables = [value] if isinstance(value, keras.Variable) else []
        if isinstance(value, keras.random.SeedGenerator):
            variables = [value.state]
        elif isinstance(value, (keras.Layer, keras.Metric)):
            variables = value.variables
        result |= {id(variable): variable for variable in variables}
    return list(result.values())


def _referenced(roots: Iterable[Any]) -> Iterator[Any]:
    """Yield the roots and all that they refer to, each once, depth first."""
    stack: list[Any] = list(roots)[::-1]
    seen: set[int] = set()
    objects = 0
    while stack:
        value = stack.pop()
        if id(value) in seen or value is None:
            continue
        if isinstance(value, keras.Variable):
            seen.add(id(value))
            yield value
        if isinstance(value, _LEAVES):
            continue
        seen.add(id(value))
        yield value
        if _is_layer(value):
            stack.extend(_references_of_layer(value)[::-1])
        elif objects < _MAX_OBJECTS:
            objects += 1
            stack.extend(_references(value)[::-1])


def _is_layer(value: Any) -> bool:
    return isinstance(value, keras.Operation) or hasattr(type(value), "cells_and_names")


def _references_of_layer(layer: Layer) -> list[Any]:
    forward = type(layer).call if isinstance(layer, keras.Operation) else type(layer).construct
    return [*children_of(layer).values(), *_attributes(layer), forward]


def _references(value: Any) -> list[Any]:
    """Return the objects that a value other than a layer refers to."""
    if isinstance(value, types.FunctionType):
        return [*_closure_of(value), *(value.__defaults__ or ()), *_globals_of(value)]
    if isinstance(value, types.MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, types.ModuleType) or _belongs_to(_LIBRARIES, type(value).__module__):
        return [value.__wrapped__] if "__wrapped__" in getattr(value, "__dict__", {}) else []
    return _attributes(value)


def _attributes(value: Any) -> list[Any]:
    attributes = getattr(value, "__dict__", {})
    return [item for name, item in list(attributes.items()) if not str(name).startswith(PREFIX)]


def _closure_of(function: types.FunctionType) -> list[Any]:
    values = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # Not assigned yet.
            values.append(cell.cell_contents)
    return values


def _globals_of(function: types.FunctionType) -> list[Any]:
    """Return the global values that a user's function and the functions inside it name."""
    if _belongs_to((*_LIBRARIES, "mixtrain"), function.__module__):
        return []
    names: list[str] = []
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.extend(code.co_names)
        codes.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    names = list(dict.fromkeys(names))
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    modules = [value for value in values if isinstance(value, types.ModuleType)]
    modules = [module for module in modules if not _belongs_to((*_LIBRARIES, "mixtrain"), module.__name__)]
    # module.net: the code has both names, but not which belongs to which.
    return [*values, *(vars(module)[name] for module in modules for name in names if name in vars(module))]


def _belongs_to(libraries: Iterable[str], module: str | None) -> bool:
    return (module or "").partition(".")[0] in libraries
