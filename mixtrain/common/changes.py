"""What compiled calls were traced under and may change later: precision, and which cells are in training."""

from __future__ import annotations

from collections.abc import Hashable

from mixtrain.common.autocast import autocast_in_force


class _Counts:
    precision = 0
    mode = 0


def precision_changed() -> None:
    """Note that some layer's precision changed, so that steps compiled before are compiled anew."""
    _Counts.precision += 1


def precision_version() -> Hashable:
    """Return what differs whenever some layer's precision has changed, and under another autocast."""
    return _Counts.precision, autocast_in_force()


def mode_changed() -> None:
    """Note that some cell was switched between training and inference."""
    _Counts.mode += 1


def mode_version() -> int:
    """Return a number that grows whenever some cell is switched between training and inference."""
    return _Counts.mode
