"""Replace the forward function of a layer, and restore it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mixtrain import backend
from mixtrain.network.walk import is_cell
from mixtrain.typing import Layer

Forward = Callable[..., Any]


def interpose(layer: Layer, wrap: Callable[[Forward], Forward], *, method: str | None = None) -> Callable[[], None]:
    """Replace the forward function of one layer object by ``wrap(forward)``.

    `layer`: A Cell (whose `construct` is replaced), Keras layer or operation (whose `call` is). `wrap`: Takes the
    current forward function and returns the one to use. `method`: Name of another method to replace.

    Returns: A function that restores what was replaced; restore several interpositions in reverse order.
    """
    name = method or ("construct" if is_cell(layer) else "call")
    previous = vars(layer).get(name)
    # Bypass the layer's attribute tracking: a function is not part of its state.
    object.__setattr__(layer, name, backend.never_cached(wrap(getattr(layer, name))))

    def restore() -> None:
        if previous is None:
            object.__delattr__(layer, name)
        else:
            object.__setattr__(layer, name, previous)

    return restore
