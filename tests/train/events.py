"""Event files read back."""

from __future__ import annotations

import pathlib
from typing import Any

import tensorflow as tf


def events(folder: pathlib.Path) -> list[tuple[str, str, int, Any]]:
    """Return (plugin, tag, step, value) for everything in the event files of a folder, in the order of writing."""
    found = []
    for path in sorted(folder.glob("events.*")):
        for record in tf.data.TFRecordDataset(str(path)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                plugin = value.metadata.plugin_data.plugin_name
                found.append((plugin, value.tag, event.step, tf.make_ndarray(value.tensor)))
    return found


def numbers(folder: pathlib.Path, tag: str) -> dict[int, float]:
    """Return the numbers under a tag by step."""
    return {step: float(value) for plugin, name, step, value in events(folder) if (plugin, name) == ("scalars", tag)}
