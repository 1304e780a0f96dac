"""Which cells a function reaches, through closures, globals and attributes: a compiled call depends on their modes."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any, Final

import keras

_LIBRARIES: Final = ("mixtrain", "keras", "tensorflow", "numpy", "builtins")
_MOST: Final = 10_000


def training_flags(roots: Iterable[Any]) -> tuple[bool, ...]:
    """Return, for every cell that functions or other objects reach, whether it is in training.

    Args:
        roots: Functions, methods, Cells, and objects that hold them.
    """
    return tuple(bool(cell.training) for root in _cells(roots) for _, cell in root.cells_and_names())


def _cells(roots: Iterable[Any]) -> Iterator[Any]:
    """Yield the topmost cells, each once, in a fixed order."""
    waiting: list[Any] = list(roots)[::-1]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (type, types.ModuleType, str, int, float, keras.Variable)):
            continue
        seen.add(id(value))
        if hasattr(type(value), "cells_and_names"):
            yield value
        else:
            waiting.extend(list(_held(value))[::-1])


def _held(value: Any) -> Iterable[Any]:
    """Return what a value holds."""
    if isinstance(value, types.FunctionType):
        return [*_closed_over(value), *_globals_of(value)]
    if isinstance(value, types.MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    if isinstance(value, dict):
        return list(value.values())
    if _is_library(type(value).__module__) and not hasattr(value, "__wrapped__"):
        return []
    return list(getattr(value, "__dict__", {}).values())


def _closed_over(function: types.FunctionType) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # Not assigned yet.
            continue
    return found


def _globals_of(function: types.FunctionType) -> list[Any]:
    """Return the global values that a user's function names, and so do the functions inside it."""
    if _is_library(function.__module__):
        return []
    names: list[str] = []
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.extend(code.co_names)
        codes.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return [function.__globals__[name] for name in dict.fromkeys(names) if name in function.__globals__]


def _is_library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _LIBRARIES
