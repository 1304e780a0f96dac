"""Values that summary operations put aside in a step, for whoever records them: nothing where nobody does."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixtrain import backend
from mixtrain.changes import precision_changed


class _Held:
    """The values put aside, by plugin, tag, format and shape; how many record; whether anything asked."""

    values: dict[tuple[Any, ...], backend.HeldValue] = {}
    recorders = 0
    asked = False


def put_aside(plugin: str, tag: str, value: Any) -> None:
    """Keep a tensor as the newest of its tag, where somebody records.

    Args:
        plugin: "scalar", "image", "tensor" or "histogram".
        tag: Its name.
        value: The tensor; of a step that is being compiled, or not.
    """
    _Held.asked = True
    if not _Held.recorders:
        return
    key = (plugin, tag, str(value.dtype), tuple(value.shape))
    if key not in _Held.values:
        # Never dropped: steps that were compiled with it may still be called.
        _Held.values[key] = backend.HeldValue(value)
    _Held.values[key].put(value)


def begin_recording() -> None:
    """Note that somebody records from here on; steps compiled before are recompiled."""
    if not _Held.recorders:
        take_values()  # What an earlier recorder left.
    _Held.recorders += 1
    if _Held.asked:
        precision_changed()


def end_recording() -> None:
    """Note that somebody stopped; steps compiled before are recompiled, without the operations."""
    _Held.recorders -= 1
    if _Held.asked:
        precision_changed()


def take_values() -> list[tuple[str, str, np.ndarray]]:
    """Return (plugin, tag, value) for what was put aside since the last time."""
    newest: dict[tuple[str, str], tuple[int, np.ndarray]] = {}
    for (plugin, tag, *_), held in _Held.values.items():
        taken = held.take()
        if taken is not None and taken[0] > newest.get((plugin, tag), (0,))[0]:
            newest[plugin, tag] = taken
    return [(plugin, tag, value) for (plugin, tag), (_, value) in newest.items()]
