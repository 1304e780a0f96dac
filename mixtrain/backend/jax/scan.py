"""A loop over the first axis of tensors that returns every state."""

from __future__ import annotations

from collections.abc import Callable

import jax

from mixtrain.typing import Tree


def scan(step: Callable[[Tree, Tree], Tree], initial: Tree, elements: Tree) -> Tree:
    """Run ``state = step(state, element)`` for each slice of `elements` along their first axis.

    Args:
        step: Takes the state and one slice of each element, and returns the next state, of the same structure.
        initial: The state before the first step: a tensor or a tuple of tensors.
        elements: A tensor or a tuple of tensors with a common first axis.

    Returns:
        The states after each step, stacked along a new first axis, in the structure of `initial`.
    """

    def body(state: Tree, element: Tree) -> tuple[Tree, Tree]:
        state = step(state, element)
        return state, state

    return jax.lax.scan(body, initial, elements)[1]
