"""Functions of the user's that run before and after a Cell's forward pass."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Literal

from mixtrain import checks
from mixtrain.changes import precision_changed
from mixtrain.nn.cell_tree import CellTree

_Place = Literal["before", "after"]
_numbers = itertools.count()


class HookHandle:
    """What registering a hook returns; `remove` takes the hook away.

    Args:
        hooks: Where the hook is kept.
        number: Its key there.
    """

    def __init__(self, hooks: dict[int, Any], number: int) -> None:
        self._hooks, self._number = hooks, number

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        if self._hooks.pop(self._number, None) is not None:
            precision_changed()


class CellHooks(CellTree):
    """The part of a Cell that runs hooks."""

    def register_forward_pre_hook(
        self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call a function before each forward pass.

        Args:
            hook_fn: Takes the cell and the tuple of its inputs; what it returns replaces them, unless it is None.
            prepend: Whether it runs before the hooks that are there.
            with_kwargs: Whether it also takes the keyword inputs, and returns (inputs, keyword inputs) or None.

        Returns:
            A handle whose `remove` takes the hook away.

        Raises:
            TypeError: `hook_fn` cannot be called.
        """
        return self._add_hook("before", "register_forward_pre_hook", hook_fn, prepend, with_kwargs)

    def register_forward_hook(
        self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call a function after each forward pass.

        Args:
            hook_fn: Takes the cell, the tuple of its inputs and its output; what it returns replaces the output,
                unless it is None.
            prepend: Whether it runs before the hooks that are there.
            with_kwargs: Whether it also takes the keyword inputs, before the output.

        Returns:
            A handle whose `remove` takes the hook away.

        Raises:
            TypeError: `hook_fn` cannot be called.
        """
        return self._add_hook("after", "register_forward_hook", hook_fn, prepend, with_kwargs)

    def _add_hook(
        self, place: _Place, where: str, hook_fn: Callable[..., Any], prepend: bool, with_kwargs: bool
    ) -> HookHandle:
        if not callable(hook_fn):
            raise checks.fail_type(where, "hook_fn must be a function", hook_fn, "hook_fn=def_of_yours")
        hooks = self.__dict__.setdefault("_hooks", {"before": {}, "after": {}})[place]
        number = next(_numbers)
        entries = [(number, (hook_fn, with_kwargs)), *hooks.items()] if prepend else [
            *hooks.items(), (number, (hook_fn, with_kwargs))
        ]
        hooks.clear()
        hooks.update(entries)
        # What was compiled without the hook is compiled anew.
        precision_changed()
        return HookHandle(hooks, number)

    def _call_hooked(self, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return ``forward(*args, **kwargs)`` with the hooks before and after it."""
        hooks = self.__dict__.get("_hooks")
        if hooks is None:
            return forward(args, kwargs)
        for hook, with_kwargs in list(hooks["before"].values()):
            changed = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if changed is not None and with_kwargs:
                args, kwargs = changed
            elif changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        output = forward(args, kwargs)
        for hook, with_kwargs in list(hooks["after"].values()):
            changed = hook(self, args, kwargs, output) if with_kwargs else hook(self, args, output)
            output = output if changed is None else changed
        return output
