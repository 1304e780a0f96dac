"""Names of a module that are imported when they are used, and what is said of a name that there is not."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

# The function that finds any other name of a module, or raises an AttributeError that suggests one.
_finders: Final[list[Callable[[ModuleType, str], Any]]] = []


def find_with(finder: Callable[[ModuleType, str], Any]) -> None:
    """Set what finds the names that a module does not define; it takes the module and the name."""
    _finders[:] = [finder]


def serve_names(module: str, homes: Mapping[str, str] | None = None) -> None:
    """Give a module a `__getattr__`, by which its names are found that it does not define.

    It is set from here, as a type checker that saw the module define it would accept every name.

    `module`: The ``__name__`` of the module. `homes`: Where each name is defined that is imported when it is used:
    "package.module" for one of the same name there, "package.module:other" for another one, "package.module:" for the
    module itself.
    """
    space, table = sys.modules[module], homes or {}

    def find(name: str) -> Any:
        if name not in table:
            if not _finders or (name.startswith("__") and name != "__all__"):
                raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=space)
            return _finders[0](space, name)
        path, colon, other = table[name].partition(":")
        with _without_collections():
            found = importlib.import_module(path)
        value = found if colon and not other else getattr(found, other or name)
        setattr(space, name, value)  # From now on an attribute like any other.
        return value

    space.__getattr__ = find  # type: ignore[method-assign]


@contextmanager
def _without_collections() -> Iterator[None]:
    """Pause the collection of garbage: imports create none, and each would go through all of TensorFlow's objects."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
