"""Event files read back, by what their format says alone: both backends' files are read without TensorFlow."""

from __future__ import annotations

import io
import pathlib
import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

# TensorFlow's numbers of the formats that the tests write.
_FORMATS: Final = {1: np.float32, 2: np.float64, 3: np.int32, 4: np.uint8, 9: np.int64, 10: np.bool_}
_STRING: Final = 7


def events(folder: pathlib.Path) -> list[tuple[str, str, int, Any]]:
    """Return (plugin, tag, step, value) for everything in the event files of a folder, in the order of writing."""
    found = []
    for path in sorted(folder.glob("events.*")):
        for record in _records(path.read_bytes()):
            event = _fields(record)
            (step,) = event.get(2, [0])
            for value in (value for summary in event.get(5, []) for value in _fields(summary).get(1, [])):
                entry = _fields(value)
                ((plugin,),) = [_fields(data).get(1, [b""]) for data in _fields(entry[9][0]).get(1, [b""])]
                found.append((plugin.decode(), entry[1][0].decode(), step, _tensor(entry[8][0])))
    return found


def numbers(folder: pathlib.Path, tag: str) -> dict[int, float]:
    """Return the numbers under a tag by step."""
    return {step: float(value) for plugin, name, step, value in events(folder) if (plugin, name) == ("scalars", tag)}


def pixels(image: bytes) -> np.ndarray:
    """Return the pixels of an image in an event file."""
    return np.asarray(pytest.importorskip("PIL.Image").open(io.BytesIO(image)))


# ---- the format: records of (length, checksum, protocol buffer, checksum) -----------------------------------------
def _records(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        (length,) = struct.unpack_from("<Q", data, start)
        yield data[start + 12 : start + 12 + length]
        start += 12 + length + 4


def _fields(data: bytes) -> dict[int, list[Any]]:
    """Return the fields of a protocol buffer by their number: ints, or bytes for everything else."""
    found: dict[int, list[Any]] = {}
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        value: Any
        if key & 7 == 0:
            value, place = _varint(data, place)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, place = _varint(data, place)
            value, place = data[place : place + size], place + size
        found.setdefault(key >> 3, []).append(value)
    return found


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
        if byte < 128:
            return value, place


def _tensor(data: bytes) -> np.ndarray:
    fields = _fields(data)
    sizes = [_fields(size).get(1, [0])[0] for shape in fields.get(2, []) for size in _fields(shape).get(2, [])]
    if fields[1] == [_STRING]:
        return np.array(fields[8], dtype=object).reshape(sizes)
    return np.frombuffer(fields[4][0], _FORMATS[fields[1][0]]).reshape(sizes)
