"""Pillow images: recognize them, and create them from arrays; Pillow is needed only to create one."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_picture(value: Any) -> bool:
    """Whether `value` is a Pillow image."""
    return any(cls.__module__ == "PIL.Image" and cls.__name__ == "Image" for cls in type(value).__mro__)


def to_picture(where: str, array: np.ndarray) -> Any:
    """Return an array (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) as a Pillow image."""
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
