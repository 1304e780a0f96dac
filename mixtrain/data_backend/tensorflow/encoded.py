"""Decoding of image files, by one operation for each."""

from __future__ import annotations

from typing import Any, Final

import tensorflow as tf

from mixtrain.typing import Tensor

DCT: Final = "INTEGER_ACCURATE"
_JPEG: Final = b"\xff\xd8\xff"  # The first bytes of JPEG files.


def is_jpeg(contents: bytes) -> bool:
    """Whether the contents of a file are a JPEG image."""
    return contents.startswith(_JPEG)


def decoded(contents: Any, jpeg: bool) -> Tensor:
    """Return the image, uint8 (H, W, 3), in the contents of a JPEG file or another one, a string tensor."""
    if jpeg:
        return tf.raw_ops.DecodeJpeg(contents=contents, channels=3, dct_method=DCT)
    return tf.raw_ops.DecodeImage(contents=contents, channels=3, expand_animations=False)
