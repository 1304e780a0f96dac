"""Hooks of a tensor, which read and may replace its gradient, and the handle that removes a hook."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from mixtrain import checks
from mixtrain.typing import Tensor

_ids = itertools.count()


class HookHandle:
    """The handle of a registered hook; `remove` removes the hook.

    `hooks`: The dict that holds the hook. `hook_id`: Its key. `on_remove`: Called after the hook was removed.
    """

    def __init__(self, hooks: dict[int, Any], hook_id: int, on_remove: Callable[[], None] = lambda: None) -> None:
        self._hooks, self._id, self._on_remove = hooks, hook_id, on_remove

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        if self._hooks.pop(self._id, None) is not None:
            self._on_remove()


class GradientHooks:
    """The hooks of one tensor, called in the order of registration.

    `changed`: Called after each change of them. `content`: What the tensor holds once it is hooked; after a write in
    place it holds another, whose gradient these hooks do not get.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._functions: dict[int, Callable[[Tensor], Tensor | None]] = {}
        self._changed = changed
        self.content: Any = None

    def add(self, where: str, function: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Add a function of the gradient for a caller of a name; return its handle. Raises: TypeError if it is none."""
        if not callable(function):
            raise checks.fail_type(where, "hook must be a function", function, "a function")
        hook_id = next(_ids)
        self._functions[hook_id] = function
        self._changed()
        return HookHandle(self._functions, hook_id, self._changed)

    def functions(self) -> list[Callable[[Tensor], Tensor | None]]:
        """The hooks themselves."""
        return list(self._functions.values())

    def __call__(self, gradients: tuple[Tensor, ...]) -> Tensor:
        """Return the gradient, the only one of a tuple, after all hooks."""
        (gradient,) = gradients
        for function in self.functions():
            replacement = function(gradient)
            gradient = gradient if replacement is None else replacement
        return gradient
