"""Encoded images of one format, decoded by one operation each: in a graph, or at once."""

from __future__ import annotations

from typing import Any, Final

import tensorflow as tf

DCT: Final = "INTEGER_ACCURATE"
_JPEG: Final = b"\xff\xd8\xff"  # How such files begin.


def is_jpeg(contents: bytes) -> bool:
    """Whether these are the contents of a JPEG file."""
    return contents.startswith(_JPEG)


def decoded(contents: Any, jpeg: bool) -> Any:
    """Return the image, uint8 (H, W, 3), of a file's contents, a string: of a JPEG file, or of any other."""
    if jpeg:
        return tf.raw_ops.DecodeJpeg(contents=contents, channels=3, dct_method=DCT)
    return tf.raw_ops.DecodeImage(contents=contents, channels=3, expand_animations=False)
