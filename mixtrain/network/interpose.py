"""Standing between a layer and its computation: replace its forward function, and put it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mixtrain.network.walk import is_cell

Forward = Callable[..., Any]


def interpose(layer: Any, wrap: Callable[[Forward], Forward], *, method: str | None = None) -> Callable[[], None]:
    """Replace the forward function of one layer object by ``wrap(forward)``.

    Args:
        layer: A Cell (whose `construct` is replaced), Keras layer or operation (whose `call` is).
        wrap: Takes the present forward function and returns the one to use.
        method: The method to replace instead, by its name.

    Returns:
        A function that puts back what was there; call it in the reverse order of several interpositions.
    """
    name = method or ("construct" if is_cell(layer) else "call")
    before = vars(layer).get(name)
    # Past the layer's own attribute tracking: a function is no part of its state.
    object.__setattr__(layer, name, wrap(getattr(layer, name)))

    def restore() -> None:
        if before is None:
            object.__delattr__(layer, name)
        else:
            object.__setattr__(layer, name, before)

    return restore
