"""Functions of the user's that run before and after a Cell's forward pass, and on its way back."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args

from mixtrain import checks
from mixtrain.boundary import run_users
from mixtrain.cell.tree import CellTree
from mixtrain.common.gradient_hooks import HookHandle
from mixtrain.ops.hook_backward import hook_gradients
from mixtrain.trace_version import layer_changed

_Place = Literal["before", "after", "backward", "backward_pre"]
_numbers = itertools.count()


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

    def register_backward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call a function with the gradients of the cell's inputs.

        It is not called where nobody asks for these, as of a network's first layer in training; a function of
        `register_backward_pre_hook` is.

        Args:
            hook_fn: Takes the cell, the tuple of its inputs' gradients and the tuple of its outputs' gradients; what
                it returns replaces the inputs' gradients, unless it is None. In PyNative mode the gradients have
                values; in a compiled call the function is traced once.

        Returns:
            A handle whose `remove` takes the hook away.

        Raises:
            TypeError: `hook_fn` cannot be called.
        """
        return self._add_hook("backward", "register_backward_hook", hook_fn, False, False)

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call a function with the gradients of the cell's outputs, before they go through the cell.

        Args:
            hook_fn: Takes the cell and the tuple of its outputs' gradients; what it returns replaces them, unless it
                is None.

        Returns:
            A handle whose `remove` takes the hook away.

        Raises:
            TypeError: `hook_fn` cannot be called.
        """
        return self._add_hook("backward_pre", "register_backward_pre_hook", hook_fn, False, False)

    def _add_hook(
        self, place: _Place, where: str, hook_fn: Callable[..., Any], prepend: bool, with_kwargs: bool
    ) -> HookHandle:
        if not callable(hook_fn):
            raise checks.fail_type(where, "hook_fn must be a function", hook_fn, "hook_fn=def_of_yours")
        hooks = self.__dict__.setdefault("_hooks", {place: {} for place in get_args(_Place)})[place]
        number = next(_numbers)
        entries = [(number, (hook_fn, with_kwargs)), *hooks.items()] if prepend else [
            *hooks.items(), (number, (hook_fn, with_kwargs))
        ]
        hooks.clear()
        hooks.update(entries)
        layer_changed(self)
        return HookHandle(hooks, number, partial(layer_changed, self))

    def _call_hooked(self, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return ``forward(*args, **kwargs)`` with the hooks before and after it."""
        hooks = self.__dict__.get("_hooks")
        if hooks is None:
            return forward(args, kwargs)
        for hook, with_kwargs in list(hooks["before"].values()):
            changed = run_users(hook, (self, args, kwargs) if with_kwargs else (self, args), {})
            if changed is not None and with_kwargs:
                args, kwargs = changed
            elif changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        received: list[tuple[Any, ...]] = []
        if hooks["backward"]:
            args = self._before_backward_hooks(args, received)
        output = forward(args, kwargs)
        for hook, with_kwargs in list(hooks["after"].values()):
            changed = run_users(hook, (self, args, kwargs, output) if with_kwargs else (self, args, output), {})
            output = output if changed is None else changed
        if hooks["backward"]:
            output = self._hooked_output("register_backward_hook", output, received.append)
        for hook, _ in reversed(list(hooks["backward_pre"].values())):
            output = self._hooked_output("register_backward_pre_hook", output, partial(hook, self))
        return output

    def _before_backward_hooks(self, args: tuple[Any, ...], received: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return the inputs with the backward hooks in the way of their gradients.

        Args:
            args: The inputs.
            received: Where the outputs' gradients will be by then.
        """
        # On the way back the last one comes first.
        for hook, _ in reversed(list(self.__dict__["_hooks"]["backward"].values())):
            args = hook_gradients("register_backward_hook", args, partial(self._call_backward_hook, hook, received))
        return args

    def _call_backward_hook(
        self, hook: Callable[..., Any], received: list[tuple[Any, ...]], of_inputs: tuple[Any, ...]
    ) -> Any:
        return hook(self, of_inputs, received[-1])

    def _hooked_output(self, where: str, output: Any, hook: Callable[[tuple[Any, ...]], Any]) -> Any:
        """Return the output, one tensor or several, with a function in the way of its gradients."""
        several = isinstance(output, (tuple, list))
        passed = hook_gradients(where, output if several else (output,), hook)
        return passed if several else passed[0]
