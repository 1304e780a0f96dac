"""Hooks of a tensor: functions that see, and may replace, its gradient; and the handle that takes a hook away."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

_numbers = itertools.count()


class HookHandle:
    """What registering a hook returns; `remove` takes the hook away.

    Args:
        hooks: Where the hook is kept.
        number: Its key there.
        removed: Called when it was taken away.
    """

    def __init__(self, hooks: dict[int, Any], number: int, removed: Callable[[], None] = lambda: None) -> None:
        self._hooks, self._number, self._removed = hooks, number, removed

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        if self._hooks.pop(self._number, None) is not None:
            self._removed()


class GradientHooks:
    """The hooks of one tensor, called in the order in which they were added."""

    def __init__(self) -> None:
        self._functions: dict[int, Callable[[Any], Any]] = {}

    def add(self, function: Callable[[Any], Any]) -> HookHandle:
        """Add a function of the gradient; return its handle."""
        number = next(_numbers)
        self._functions[number] = function
        return HookHandle(self._functions, number)

    def __call__(self, gradients: tuple[Any, ...]) -> Any:
        """Return the gradient, the only one of a tuple, as the hooks leave it."""
        (gradient,) = gradients
        for function in list(self._functions.values()):
            changed = function(gradient)
            gradient = gradient if changed is None else changed
        return gradient
