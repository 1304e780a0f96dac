"""Functions of the user's that see, and may replace, gradients on their way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.boundary import running, settled, wants_tensors, wrapped
from mixtrain.dtype import is_float
from mixtrain.ops.primitive import Primitive


class HookBackward(Primitive):
    """Passes tensors on; their gradients go through a function.

    Args:
        hook_fn: Takes the tuple of the gradients, one for each tensor, and returns those to go on with, or None to
            leave them. In PyNative mode it sees values; in a compiled call it is traced once, as `construct` is.
        cell_id: Accepted for MindSpore scripts.

    Returns:
        A call returns its tensor, or the tuple of its tensors.

    Raises:
        TypeError: `hook_fn` is no function, or returns another number of gradients than it took.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> double = ops.HookBackward(lambda gradients: gradients[0] * 2)
        >>> float(mixtrain.grad(lambda x: double(x) * 3)(mixtrain.Tensor(1.0)))
        6.0

    Source: MindSpore, `mindspore.ops.HookBackward`.
    """

    def __init__(self, hook_fn: Callable[[tuple[Any, ...]], Any], cell_id: str = "") -> None:
        super().__init__()
        if not callable(hook_fn):
            raise checks.fail_type(self.name, "hook_fn must be a function", hook_fn, "HookBackward(def_of_yours)")
        self.hook_fn = hook_fn
        self.cell_id = cell_id

    def __call__(self, *inputs: Any) -> Any:
        """Return the inputs."""
        passed = hook_gradients(self.name, inputs, self.hook_fn)
        return passed[0] if len(passed) == 1 else passed


class InsertGradientOf(Primitive):
    """Passes a tensor on; its gradient goes through a function.

    Args:
        f: Takes the gradient and returns the one to go on with. In a compiled call it is traced once.

    Raises:
        TypeError: `f` is no function.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> halve = ops.InsertGradientOf(lambda gradient: gradient / 2)
        >>> float(mixtrain.grad(lambda x: halve(x) * 3)(mixtrain.Tensor(1.0)))
        1.5

    Source: MindSpore, `mindspore.ops.InsertGradientOf`.
    """

    def __init__(self, f: Callable[[Any], Any]) -> None:
        super().__init__()
        if not callable(f):
            raise checks.fail_type(self.name, "f must be a function", f, "InsertGradientOf(def_of_yours)")
        self.f = f

    def __call__(self, x: Any) -> Any:
        """Return `x`."""
        return hook_gradients(self.name, (x,), lambda gradients: self.f(gradients[0]))[0]


def hook_gradients(where: str, values: Sequence[Any], hook_fn: Callable[[tuple[Any, ...]], Any]) -> tuple[Any, ...]:
    """Return values as they are, with a function in the way of their gradients.

    Args:
        where: Who asks, for errors.
        values: Tensors and other values. What is no floating-point tensor has the gradient None.
        hook_fn: Takes the tuple of gradients; returns as many, one alone where there is one, or None to leave them.
    """
    wants = wants_tensors(values)
    values = tuple(settled(values))
    places = [place for place, value in enumerate(values) if backend.is_tensor(value) and is_float(value.dtype)]

    def through(found: tuple[Any, ...]) -> list[Any]:
        gradients: list[Any] = [None] * len(values)
        for place, gradient in zip(places, found, strict=True):
            gradients[place] = gradient
        with running("tensors"):
            changed = settled(_returned(where, hook_fn(wrapped(tuple(gradients))), gradients))
        return [
            old if changed[place] is None else keras.ops.cast(backend.to_tensor(changed[place]), old.dtype)
            for place, old in zip(places, found, strict=True)
        ]

    passed = list(values)
    if places:
        for place, value in zip(places, backend.with_backward_hook([values[p] for p in places], through), strict=True):
            passed[place] = value
    return wrapped(tuple(passed)) if wants else tuple(passed)


def _returned(where: str, changed: Any, gradients: Sequence[Any]) -> Sequence[Any]:
    """Return what a hook returned as one gradient for each that it took."""
    if changed is None:
        return gradients
    changed = tuple(changed) if isinstance(changed, (tuple, list)) else (changed,)
    if len(changed) != len(gradients):
        expected = f"hook_fn must return {len(gradients)} gradients, as many as it takes, or None"
        raise checks.fail_type(where, expected, changed, "return tuple(g * 2 for g in gradients)")
    return changed
