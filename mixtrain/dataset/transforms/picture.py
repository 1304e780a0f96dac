"""Pillow's images: told from arrays, and made from them; Pillow is needed only where one is made."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_picture(value: Any) -> bool:
    """Whether `value` is one of Pillow's images."""
    return any(kind.__module__ == "PIL.Image" and kind.__name__ == "Image" for kind in type(value).__mro__)


def to_picture(where: str, array: np.ndarray) -> Any:
    """Return an array (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) as one of Pillow's images.

    Raises:
        ImportError: Pillow is not installed.
        TypeError: Pillow has no such image.
        ValueError: The array has another shape.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            f"{where}: expected Pillow, which its images come from; got no package PIL. Write: pip install pillow."
        ) from error
    if array.ndim not in (2, 3):
        raise ValueError(
            f"{where}: expected an image (H, W) or (H, W, C); got shape {array.shape}. Write one image, not a batch."
        )
    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[..., 0]
    try:
        return Image.fromarray(array)
    except TypeError as error:
        raise TypeError(
            f"{where}: expected uint8 values, as Pillow's images have; got {array.dtype} of shape {array.shape}. "
            "Write image.astype(np.uint8) first."
        ) from error
