"""Values that summary operations put aside in a step, for whoever records them: nothing where nobody does."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixtrain import backend
from mixtrain.trace_version import note_condition


class _Held:
    """The values put aside, by plugin, tag, format and shape; how many record."""

    values: dict[tuple[Any, ...], backend.LiveValue] = {}
    recorders = 0


def put_aside(plugin: str, tag: str, value: Any) -> None:
    """Keep a tensor as the newest of its tag, where somebody records.

    Args:
        plugin: "scalar", "image", "tensor" or "histogram".
        tag: Its name.
        value: The tensor; of a step that is being compiled, or not.
    """
    note_condition(_recording)
    if not _recording():
        return
    key = (plugin, tag, str(value.dtype), tuple(value.shape))
    if key not in _Held.values:
        # Never dropped: steps that were compiled with it may still be called.
        _Held.values[key] = backend.LiveValue(value)
    _Held.values[key].put(value)


def _recording() -> bool:
    return _Held.recorders > 0


def begin_recording() -> None:
    """Note that somebody records from here on; compiled steps with summary operations are retraced."""
    if not _Held.recorders:
        take_values()  # What an earlier recorder left.
    _Held.recorders += 1


def end_recording() -> None:
    """Note that somebody stopped; compiled steps with summary operations are retraced, without them."""
    _Held.recorders -= 1


def take_values() -> list[tuple[str, str, np.ndarray]]:
    """Return (plugin, tag, value) for what was put aside since the last time."""
    newest: dict[tuple[str, str], tuple[int, np.ndarray]] = {}
    for (plugin, tag, *_), held in _Held.values.items():
        taken = held.take()
        if taken is not None and taken[0] > newest.get((plugin, tag), (0,))[0]:
            newest[plugin, tag] = taken
    return [(plugin, tag, value) for (plugin, tag), (_, value) in newest.items()]
