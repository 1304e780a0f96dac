"""Event files as TensorBoard reads them: one value a tag and step, written without TensorBoard installed."""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
import zlib
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

_BUCKETS = 30
_count = itertools.count()

# Numbers of TensorFlow's formats in its file formats.
_FORMATS: Final = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9, "bool": 10, "uint16": 17,
    "float16": 19, "uint32": 22, "uint64": 23,
}
_STRING: Final = 7


class EventWriter:
    """Writes one event file.

    Args:
        folder: Where the file is made.
        suffix: What its name ends with.

    Attributes:
        path: The file.
    """

    def __init__(self, folder: str, suffix: str = "") -> None:
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{next(_count)}.v2{suffix}"
        self.path = os.path.join(folder, name)
        self._file = open(self.path, "wb")
        self._write_event(_field(3, b"brain.Event:2"))
        self.flush()

    def scalar(self, tag: str, value: Any, step: int) -> None:
        """Write a number."""
        self._write(tag, np.float32(value), step, "scalars")

    def tensor(self, tag: str, value: np.ndarray, step: int) -> None:
        """Write an array as it is."""
        self._write(tag, value, step, "tensor")

    def image(self, tag: str, value: np.ndarray, step: int) -> None:
        """Write images, uint8 (N, H, W, C) of 1, 3 or 4 channels, as PNG."""
        size = [str(value.shape[2]).encode(), str(value.shape[1]).encode()]
        self._write(tag, [*size, *map(_png, value)], step, "images")

    def histogram(self, tag: str, value: np.ndarray, step: int) -> None:
        """Write how values are spread: rows of left edge, right edge and count, float64 (30, 3)."""
        counts, edges = np.histogram(value, _BUCKETS)
        self._write(tag, np.stack([edges[:-1], edges[1:], counts.astype(np.float64)], axis=1), step, "histograms")

    def text(self, tag: str, value: str, step: int) -> None:
        """Write text."""
        self._write(tag, [value.encode()], step, "text")

    def flush(self) -> None:
        """Bring what was written to the disk."""
        self._file.flush()

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()

    def _write(self, tag: str, value: Any, step: int, plugin: str) -> None:
        metadata = _field(1, _field(1, plugin.encode()))
        entry = _field(1, tag.encode()) + _field(8, _tensor(value)) + _field(9, metadata)
        self._write_event(_varint_field(2, step) + _field(5, _field(1, entry)))

    def _write_event(self, content: bytes) -> None:
        data = b"\x09" + struct.pack("<d", time.time()) + content
        length = struct.pack("<Q", len(data))
        self._file.write(length + _checksum(length) + data + _checksum(data))


def _tensor(value: Any) -> bytes:
    """Return an array, or a list of bytes, as TensorFlow's files hold it."""
    if isinstance(value, list):
        return _varint_field(1, _STRING) + _shape([len(value)]) + b"".join(_field(8, one) for one in value)
    array = np.asarray(value)
    if array.dtype.name not in _FORMATS:
        array = array.astype(np.float32)
    return _varint_field(1, _FORMATS[array.dtype.name]) + _shape(array.shape) + _field(4, array.tobytes())


def _shape(sizes: Iterable[int]) -> bytes:
    return _field(2, b"".join(_field(2, _varint_field(1, size)) for size in sizes))


def _field(number: int, content: bytes) -> bytes:
    """Return a field of a protocol buffer that holds bytes."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint_field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value % 2**64)


def _varint(value: int) -> bytes:
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def _png(image: np.ndarray) -> bytes:
    """Return an image (H, W, C) of uint8 as a PNG file."""
    height, width, channels = image.shape
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def _crc_table() -> list[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


_TABLE: Final = _crc_table()


def _checksum(data: bytes) -> bytes:
    """Return the checksum of a record: CRC-32C, turned and shifted as TensorFlow does it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32)
