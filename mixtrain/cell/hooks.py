"""Forward and backward hooks of a Cell."""

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
from mixtrain.typing import Tensor, Tree

_HookKind = Literal["before", "after", "backward", "backward_pre"]
_ids = itertools.count()


class CellHooks(CellTree):
    """The part of a Cell that runs hooks."""

    def register_forward_pre_hook(
        self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call a function before each forward pass.

        Args:
            hook_fn: Called with the cell and the tuple of its inputs; a result other than None replaces them.
            prepend: Whether it runs before the hooks registered so far.
            with_kwargs: Whether it also takes the keyword inputs, and returns (inputs, keyword inputs) or None.

        Returns:
            A handle whose `remove` removes the hook.

        Raises:
            TypeError: `hook_fn` cannot be called.
        """
        return self._add_hook("before", "register_forward_pre_hook", hook_fn, prepend, with_kwargs)

    def register_forward_hook(
        self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call a function after each forward pass.

        Args:
            hook_fn: Called with the cell, the tuple of its inputs and its output; a result other than None replaces
                the output.
            prepend: Whether it runs before the hooks registered so far.
            with_kwargs: Whether it also takes the keyword inputs, before the output.

        Returns:
            A handle whose `remove` removes the hook.

        Raises:
            TypeError: `hook_fn` cannot be called.
        """
        return self._add_hook("after", "register_forward_hook", hook_fn, prepend, with_kwargs)

    def register_backward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call a function with the gradients of the cell's inputs.

        It is not called where these are not computed, as for a network's first layer in training; a hook of
        `register_backward_pre_hook` is.

        Args:
            hook_fn: Called with the cell, the tuple of its inputs' gradients and the tuple of its outputs' gradients;
                a result other than None replaces the inputs' gradients. In PyNative mode the gradients have values;
                in a compiled call the function is traced once.

        Returns:
            A handle whose `remove` removes the hook.

        Raises:
            TypeError: `hook_fn` cannot be called.
        """
        return self._add_hook("backward", "register_backward_hook", hook_fn, False, False)

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call a function with the gradients of the cell's outputs, before they pass through the cell.

        Args:
            hook_fn: Called with the cell and the tuple of its outputs' gradients; a result other than None replaces
                them.

        Returns:
            A handle whose `remove` removes the hook.

        Raises:
            TypeError: `hook_fn` cannot be called.
        """
        return self._add_hook("backward_pre", "register_backward_pre_hook", hook_fn, False, False)

    def _add_hook(
        self, kind: _HookKind, where: str, hook_fn: Callable[..., Any], prepend: bool, with_kwargs: bool
    ) -> HookHandle:
        if not callable(hook_fn):
            raise checks.fail_type(where, "hook_fn must be a function", hook_fn, "hook_fn=def_of_yours")
        hooks = self.__dict__.setdefault("_hooks", {name: {} for name in get_args(_HookKind)})[kind]
        hook_id = next(_ids)
        existing = dict(hooks)
        if prepend:
            hooks.clear()
        hooks[hook_id] = (hook_fn, with_kwargs)
        hooks.update(existing)
        layer_changed(self)
        return HookHandle(hooks, hook_id, partial(layer_changed, self))

    def _call_hooked(self, forward: Callable[..., Any], args: tuple[Tensor, ...], kwargs: dict[str, Any]) -> Any:
        """Return ``forward(args, kwargs)`` with the hooks before and after it."""
        hooks = self.__dict__.get("_hooks")
        if hooks is None:
            return forward(args, kwargs)
        for hook, with_kwargs in list(hooks["before"].values()):
            replacement = run_users(hook, (self, args, kwargs) if with_kwargs else (self, args), {})
            if replacement is not None and with_kwargs:
                args, kwargs = replacement
            elif replacement is not None:
                args = replacement if isinstance(replacement, tuple) else (replacement,)
        output_gradients: list[tuple[Tensor, ...]] = []
        if hooks["backward"]:
            args = self._with_backward_hooks(args, output_gradients)
        output = forward(args, kwargs)
        for hook, with_kwargs in list(hooks["after"].values()):
            replacement = run_users(hook, (self, args, kwargs, output) if with_kwargs else (self, args, output), {})
            output = output if replacement is None else replacement
        if hooks["backward"]:
            output = self._hooked_output("register_backward_hook", output, output_gradients.append)
        for hook, _ in reversed(list(hooks["backward_pre"].values())):
            output = self._hooked_output("register_backward_pre_hook", output, partial(hook, self))
        return output

    def _with_backward_hooks(
        self, args: tuple[Tensor, ...], output_gradients: list[tuple[Tensor, ...]]
    ) -> tuple[Any, ...]:
        """Return the inputs with the backward hooks on their gradients.

        `args`: The inputs. `output_gradients`: Holds the outputs' gradients when the hooks are called.
        """
        # Gradients pass the last of them first.
        for hook, _ in reversed(list(self.__dict__["_hooks"]["backward"].values())):
            call_hook = partial(self._call_backward_hook, hook, output_gradients)
            args = hook_gradients("register_backward_hook", args, call_hook)
        return args

    def _call_backward_hook(
        self, hook: Callable[..., Any], output_gradients: list[tuple[Tensor, ...]], input_gradients: tuple[Tensor, ...]
    ) -> Any:
        return hook(self, input_gradients, output_gradients[-1])

    def _hooked_output(self, where: str, output: Tree, hook: Callable[[tuple[Tensor, ...]], Any]) -> Tree:
        """Return the output, one tensor or several, with a hook on its gradients."""
        several = isinstance(output, (tuple, list))
        outputs = hook_gradients(where, output if several else (output,), hook)
        return outputs if several else outputs[0]
