"""Hooks that read, and may replace, gradients in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.boundary import in_mode, to_backend_tensors, to_tensors, wants_tensors
from mixtrain.dtype import is_float
from mixtrain.ops.primitive import Primitive
from mixtrain.typing import Tensor, TensorLike


class HookBackward(Primitive):
    """Identity whose gradients are passed through `hook_fn`; a call returns its tensor, or the tuple of its tensors.

    `hook_fn` takes the tuple of the gradients, one for each tensor, and returns those to continue with, or None to keep
    them. In PyNative mode it receives values; in a compiled call it is traced once, as `construct` is. `cell_id` is
    accepted. Example: ``ops.HookBackward(lambda gradients: gradients[0] * 2)(x)``.
    """

    def __init__(self, hook_fn: Callable[[tuple[Tensor, ...]], Any], cell_id: str = "") -> None:
        super().__init__()
        if not callable(hook_fn):
            raise checks.fail_type(self.name, "hook_fn must be a function", hook_fn, "HookBackward(def_of_yours)")
        self.hook_fn = hook_fn
        self.cell_id = cell_id

    def __call__(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Return the inputs."""
        outputs = hook_gradients(self.name, inputs, self.hook_fn)
        return outputs[0] if len(outputs) == 1 else outputs


class InsertGradientOf(Primitive):
    """Identity whose gradient is passed through the function `f`: ``ops.InsertGradientOf(lambda dx: dx / 2)(x)``."""

    def __init__(self, f: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        if not callable(f):
            raise checks.fail_type(self.name, "f must be a function", f, "InsertGradientOf(def_of_yours)")
        self.f = f

    def __call__(self, x: TensorLike) -> Tensor:
        """Return `x`."""
        return hook_gradients(self.name, (x,), lambda gradients: self.f(gradients[0]))[0]


def hook_gradients(
    where: str, values: Sequence[TensorLike], hook_fn: Callable[[tuple[Tensor, ...]], Any]
) -> tuple[Tensor, ...]:
    """Return the values unchanged, with their gradients passed through a function.

    `hook_fn` takes the tuple of gradients, None for what is not a floating-point tensor, and returns as many, a single
    one without a tuple, or None to keep them.
    """
    wants = wants_tensors(values)
    values = tuple(to_backend_tensors(values))
    positions = [index for index, value in enumerate(values) if backend.is_tensor(value) and is_float(value.dtype)]

    def hook(float_gradients: tuple[Tensor, ...]) -> list[Tensor]:
        gradients: list[Tensor] = [None] * len(values)
        for index, gradient in zip(positions, float_gradients, strict=True):
            gradients[index] = gradient
        with in_mode("tensors"):
            new = to_backend_tensors(_check_gradients(where, hook_fn(to_tensors(tuple(gradients))), gradients))
        return [
            old if new[index] is None else keras.ops.cast(backend.to_tensor(new[index]), old.dtype)
            for index, old in zip(positions, float_gradients, strict=True)
        ]

    outputs = list(values)
    if positions:
        hooked = backend.with_backward_hook([values[index] for index in positions], hook)
        for index, value in zip(positions, hooked, strict=True):
            outputs[index] = value
    return to_tensors(tuple(outputs)) if wants else tuple(outputs)


def _check_gradients(where: str, new: Any, gradients: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """Return the result of a hook as one gradient for each that it took."""
    if new is None:
        return gradients
    new = tuple(new) if isinstance(new, (tuple, list)) else (new,)
    if len(new) != len(gradients):
        expected = f"hook_fn must return {len(gradients)} gradients, as many as it takes, or None"
        raise checks.fail_type(where, expected, new, "return tuple(g * 2 for g in gradients)")
    return new
