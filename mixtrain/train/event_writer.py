"""`EventWriter`: writes event files for TensorBoard, with TensorBoard's own record writer."""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
import zlib
from typing import Any, Final

import numpy as np

_BUCKETS: Final = 30
_count = itertools.count()


class EventWriter:
    """Writes the event file `path` in a folder, one value per tag and step; `suffix` ends its name."""

    def __init__(self, folder: str, suffix: str = "") -> None:
        try:
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.summary.writer.record_writer import RecordWriter
            from tensorboard.util.tensor_util import make_tensor_proto
        except ImportError as error:
            raise ImportError(
                "SummaryRecord: expected TensorBoard to be installed, whose writer writes event files; got none. Write "
                'pip install "mixtrain[summary]".'
            ) from error
        self._event, self._tensor = Event, make_tensor_proto
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{next(_count)}.v2{suffix}"
        self.path = os.path.join(folder, name)
        self._records = RecordWriter(open(self.path, "wb"))
        self._records.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
        self.flush()

    def scalar(self, tag: str, value: Any, step: int) -> None:
        self._write(tag, np.float32(value), step, "scalars")

    def tensor(self, tag: str, value: np.ndarray, step: int) -> None:
        # TensorBoard has no bfloat16.
        self._write(tag, value.astype(np.float32) if value.dtype.kind == "V" else value, step, "tensor")

    def image(self, tag: str, value: np.ndarray, step: int) -> None:
        """Write images, uint8 (N, H, W, C) of 1, 3 or 4 channels, as PNG."""
        size = [str(value.shape[2]).encode(), str(value.shape[1]).encode()]
        self._write(tag, [*size, *map(_png, value)], step, "images")

    def histogram(self, tag: str, value: np.ndarray, step: int) -> None:
        """Write the histogram of the values: rows of left edge, right edge and count, float64 (30, 3)."""
        counts, edges = np.histogram(value, _BUCKETS)
        self.buckets(tag, np.stack([edges[:-1], edges[1:], counts.astype(np.float64)], axis=1), step)

    def buckets(self, tag: str, rows: np.ndarray, step: int) -> None:
        """Write a histogram: rows of left edge, right edge and count, float64 (n, 3)."""
        self._write(tag, rows, step, "histograms")

    def text(self, tag: str, value: str, step: int) -> None:
        self._write(tag, [value.encode()], step, "text")

    def flush(self) -> None:
        self._records.flush()

    def close(self) -> None:
        self._records.close()

    def _write(self, tag: str, value: Any, step: int, plugin: str) -> None:
        event = self._event(wall_time=time.time(), step=step)
        entry = event.summary.value.add(tag=tag, tensor=self._tensor(value))
        entry.metadata.plugin_data.plugin_name = plugin
        self._records.write(event.SerializeToString())


def _png(image: np.ndarray) -> bytes:
    """Return an image (H, W, C) of uint8 as a PNG file."""
    height, width, channels = image.shape
    # Bit depth 8; color type 0 is gray, 2 RGB, 6 RGBA; compression, filter and interlace methods 0.
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    # Each line begins with its filter, 0 for none.
    lines = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
