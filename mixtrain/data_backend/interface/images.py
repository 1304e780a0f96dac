"""Images as tensors (..., height, width, channels): decoding, resizing, cropping, padding and flipping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from mixtrain.typing import Tensor

Border = Literal["constant", "edge", "reflect", "symmetric"]
Method = Literal["nearest", "linear", "cubic", "area", "pil_nearest", "pil_linear", "pil_cubic", "pil_lanczos"]

def decode(contents: Any) -> Tensor:
    """Return the image, uint8 (H, W, 3), of an encoded file, a vector of uint8; a NumPy array for a NumPy array."""

def decode_files(files: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the images, uint8 (H, W, 3), of encoded files, each a vector of uint8.

    Raises: ImportError if the backend needs Pillow to decode, which is not installed. ValueError if a file is not an
    image that can be decoded.
    """

def decode_part(contents: Any, choose: Callable[[Any, Any], tuple[Any, Any, Any, Any]]) -> Tensor:
    """Return a part of the image of an encoded file.

    `contents`: A vector of uint8. `choose`: Takes the image's height and width; returns the part's top, left, height
    and width.
    """

def resize(image: Tensor, height: Tensor | int, width: Tensor | int, method: Method) -> Tensor:
    """Resize an image; the dtype stays the same.

    `image`: (..., H, W, C). `height`: The new height, an int or a tensor. `width`: The new width, an int or a tensor.
    `method`: The interpolation of OpenCV, or with "pil_" that of Pillow, which averages when it shrinks.
    """

def crop(image: Tensor, top: Tensor | int, left: Tensor | int, height: Tensor | int, width: Tensor | int) -> Tensor:
    """Return the part of (..., H, W, C) of the given size that starts at (top, left)."""

def pad(
    image: Tensor, left: Tensor | int, top: Tensor | int, right: Tensor | int, bottom: Tensor | int, border: Border,
    fill: tuple[float, ...] = (0,),
) -> Tensor:
    """Pad (..., H, W, C); a "constant" border has one value, or one per channel."""

def flip(image: Tensor, axis: Literal["horizontal", "vertical"]) -> Tensor:
    """Flip (..., H, W, C) from left to right, or from top to bottom."""
