"""A loop over the first axis of tensors that returns every state."""

from __future__ import annotations

from collections.abc import Callable

import jax

from mixtrain.typing import Tree


def scan(step: Callable[[Tree, Tree], Tree], initial: Tree, elements: Tree) -> Tree:
    def body(state: Tree, element: Tree) -> tuple[Tree, Tree]:
        state = step(state, element)
        return state, state

    return jax.lax.scan(body, initial, elements)[1]
