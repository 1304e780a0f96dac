"""Values of summary operations in a step, stored only while a recorder is active."""

from __future__ import annotations

import numpy as np

from mixtrain import backend
from mixtrain.trace_version import note_condition
from mixtrain.typing import Shape, Tensor


class _State:
    """The stored values by plugin, tag, dtype and shape, and the number of active recorders."""

    values: dict[tuple[str, str, str, Shape], backend.LiveValue] = {}
    recorders = 0


def record_value(plugin: str, tag: str, value: Tensor) -> None:
    """Store a tensor as the newest of its tag, if a recorder is active.

    `plugin`: "scalar", "image", "tensor" or "histogram". `tag`: Its name. `value`: The tensor, which may be symbolic.
    """
    note_condition(_recording)
    if not _recording():
        return
    key = (plugin, tag, str(value.dtype), tuple(value.shape))
    if key not in _State.values:
        # Never removed: steps that were compiled with it may still be called.
        _State.values[key] = backend.LiveValue(value)
    _State.values[key].put(value)


def _recording() -> bool:
    return _State.recorders > 0


def begin_recording() -> None:
    """Add a recorder; with the first, compiled steps with summary operations are retraced."""
    if not _State.recorders:
        take_values()  # Drop those of an earlier recorder.
    _State.recorders += 1


def end_recording() -> None:
    """Remove a recorder; without one, compiled steps with summary operations are retraced without storing values."""
    _State.recorders -= 1


def take_values() -> list[tuple[str, str, np.ndarray]]:
    """Return (plugin, tag, value) for the values stored since the last call."""
    newest: dict[tuple[str, str], tuple[int, np.ndarray]] = {}
    for (plugin, tag, *_), live_value in _State.values.items():
        # (number that grows with each write, value)
        numbered = live_value.take()
        if numbered is not None and numbered[0] > newest.get((plugin, tag), (0,))[0]:
            newest[plugin, tag] = numbered
    return [(plugin, tag, value) for (plugin, tag), (_, value) in newest.items()]
