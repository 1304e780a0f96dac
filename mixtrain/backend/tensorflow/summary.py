"""Event files as TensorBoard reads them: one value a tag and step, written without TensorBoard installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

_BUCKETS = 30


class EventWriter:
    """Writes one event file.

    Args:
        folder: Where the file is made.
        suffix: What its name ends with.

    Attributes:
        path: The file.
    """

    def __init__(self, folder: str, suffix: str = "") -> None:
        before = set(tf.io.gfile.glob(f"{folder}/events.*"))
        self._writer = tf.summary.create_file_writer(folder, filename_suffix=suffix)
        self._writer.init()
        self._writer.flush()
        self.path = next(iter(set(tf.io.gfile.glob(f"{folder}/events.*")) - before), folder)

    def scalar(self, tag: str, value: Any, step: int) -> None:
        """Write a number."""
        self._write(tag, np.float32(value), step, "scalars")

    def tensor(self, tag: str, value: np.ndarray, step: int) -> None:
        """Write an array as it is."""
        self._write(tag, value, step, "tensor")

    def image(self, tag: str, value: np.ndarray, step: int) -> None:
        """Write images, uint8 (N, H, W, C) of 1, 3 or 4 channels, as PNG."""
        size = [str(value.shape[2]).encode(), str(value.shape[1]).encode()]
        encoded = [tf.io.encode_png(image).numpy() for image in value]
        self._write(tag, np.array([*size, *encoded], object), step, "images")

    def histogram(self, tag: str, value: np.ndarray, step: int) -> None:
        """Write how values are spread: rows of left edge, right edge and count, float64 (30, 3)."""
        counts, edges = np.histogram(value, _BUCKETS)
        self._write(tag, np.stack([edges[:-1], edges[1:], counts.astype(np.float64)], axis=1), step, "histograms")

    def text(self, tag: str, value: str, step: int) -> None:
        """Write text."""
        self._write(tag, np.array([value.encode()], object), step, "text")

    def flush(self) -> None:
        """Bring what was written to the disk."""
        self._writer.flush()

    def close(self) -> None:
        """Flush and close the file."""
        self._writer.close()

    def _write(self, tag: str, value: Any, step: int, plugin: str) -> None:
        metadata = tf.compat.v1.SummaryMetadata()
        metadata.plugin_data.plugin_name = plugin
        tensor = tf.constant(value.tolist(), tf.string) if getattr(value, "dtype", None) == object else value
        with tf.init_scope(), self._writer.as_default(step=step):
            tf.summary.write(tag, tensor, metadata=metadata)
