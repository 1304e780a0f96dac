"""What compiled calls were traced under and may change later: precision, and which cells are in training."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from mixtrain.autocast.state import autocast_in_force


class _Counts:
    precision = 0
    layers = 0
    mode = 0


def precision_changed() -> None:
    """Note that some layer's precision changed, so that steps compiled before are compiled anew."""
    _Counts.precision += 1


def layer_changed(layer: Any, before: Hashable, after: Hashable) -> None:
    """Note that a plan changed one layer; what was compiled before is used again once all is as it was then.

    Args:
        layer: The layer.
        before: What it computed by; None where it was as its user left it.
        after: What it computes by now.
    """
    # The sum over all layers, modulo 2: a change that is taken back cancels itself.
    for effect in (before, after):
        if effect is not None:
            _Counts.layers ^= hash((id(layer), effect))


def precision_version() -> Hashable:
    """Return what differs whenever some layer's precision is another one, and under another autocast."""
    return settings_version(), _Counts.layers


def settings_version() -> Hashable:
    """Return what of `precision_version` is not the plan of some layer: users' rules, hooks, autocast."""
    return _Counts.precision, autocast_in_force()


def mode_changed() -> None:
    """Note that some cell was switched between training and inference."""
    _Counts.mode += 1


def mode_version() -> int:
    """Return a number that grows whenever some cell is switched between training and inference."""
    return _Counts.mode
