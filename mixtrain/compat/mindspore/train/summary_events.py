"""`SummaryEvents`: writes the values of a `SummaryRecord` to an event file."""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

import numpy as np

from mixtrain.train.event_writer import EventWriter

_BUCKETS: Final = 30


class SummaryEvents(EventWriter):
    """Writes numbers, tensors, images, histograms and text."""

    def scalar(self, tag: str, value: Any, step: int) -> None:
        self.write(tag, np.float32(value), step, "scalars")

    def tensor(self, tag: str, value: np.ndarray, step: int) -> None:
        # TensorBoard has no bfloat16.
        self.write(tag, value.astype(np.float32) if value.dtype.kind == "V" else value, step, "tensor")

    def image(self, tag: str, value: np.ndarray, step: int) -> None:
        """Write images, uint8 (N, H, W, C) of 1, 3 or 4 channels, as PNG."""
        size = [str(value.shape[2]).encode(), str(value.shape[1]).encode()]
        self.write(tag, [*size, *map(_png, value)], step, "images")

    def histogram(self, tag: str, value: np.ndarray, step: int) -> None:
        """Write the histogram of the values: rows of left edge, right edge and count, float64 (30, 3)."""
        counts, edges = np.histogram(value, _BUCKETS)
        self.buckets(tag, np.stack([edges[:-1], edges[1:], counts.astype(np.float64)], axis=1), step)

    def text(self, tag: str, value: str, step: int) -> None:
        self.write(tag, [value.encode()], step, "text")


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
