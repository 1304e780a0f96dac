"""Event files read back with TensorBoard, without TensorFlow."""

from __future__ import annotations

import io
import pathlib
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.util.tensor_util import make_ndarray


def events(folder: pathlib.Path) -> list[tuple[str, str, int, Any]]:
    """Return (plugin, tag, step, value) for everything in the event files of a folder, in the order of writing."""
    results = []
    for path in sorted(folder.glob("events.*")):
        for event in map(Event.FromString, _records(path.read_bytes())):
            for value in event.summary.value:
                plugin = value.metadata.plugin_data.plugin_name
                results.append((plugin, value.tag, event.step, make_ndarray(value.tensor)))
    return results


def numbers(folder: pathlib.Path, tag: str) -> dict[int, float]:
    """Return the numbers under a tag by step."""
    return {step: float(value) for plugin, name, step, value in events(folder) if (plugin, name) == ("scalars", tag)}


def pixels(image: bytes) -> np.ndarray:
    """Return the pixels of an image in an event file."""
    return np.asarray(pytest.importorskip("PIL.Image").open(io.BytesIO(image)))


def _records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a file: each has its length and a checksum before it, and a checksum behind it."""
    start = 0
    while start < len(data):
        (length,) = struct.unpack_from("<Q", data, start)
        yield data[start + 12 : start + 12 + length]
        start += 12 + length + 4
