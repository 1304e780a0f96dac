"""Hooks of variables: each may replace the whole gradient of its variable, as a step or a function computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mixtrain import backend
from mixtrain.network.marks import GRADIENT_HOOK
from mixtrain.trace_version import note_condition
from mixtrain.typing import Tensor, Variable


class _Changes:
    """How often hooks were added or removed: compiled calls that compute gradients are retraced then."""

    count = 0


def _count() -> int:
    return _Changes.count


def hooks_changed() -> None:
    """Record that a variable has other hooks now."""
    _Changes.count += 1


def put_hook(variable: Variable, hook: Callable[[Tensor], Tensor]) -> None:
    """Let the gradient of a variable be what `hook` returns for it."""
    GRADIENT_HOOK.put(variable, hook)
    hooks_changed()


def hooked(gradients: Sequence[Tensor | None], variables: Sequence[Variable]) -> list[Tensor | None]:
    """Return the gradients of variables after the hooks of these; what the value does not depend on stays None."""
    note_condition(_count)
    hooks = map(GRADIENT_HOOK.of, variables)
    return [
        gradient if hook is None or gradient is None else hook(backend.densified(gradient))
        for gradient, hook in zip(gradients, hooks, strict=True)
    ]
