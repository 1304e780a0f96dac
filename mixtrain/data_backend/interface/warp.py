"""Affine transformations of images (H, W, C)."""

from __future__ import annotations

from typing import Any, Literal

from mixtrain.typing import Tensor

Sampling = Literal["nearest", "linear"]

def floats(*values: Any) -> tuple[Any, list[Tensor]]:
    """Return a namespace with `cos`, `sin`, `tan` and `stack`, and values as its float32 tensors."""

def warp(
    image: Tensor, places: Tensor, sampling: Sampling, fill: tuple[float, ...],
    size: tuple[Tensor | int, Tensor | int] | None = None,
) -> Tensor:
    """Transform an image by an affine map.

    Positions between pixels are rounded to 1/32 of a pixel, as in OpenCV.

    Args:
        image: (H, W, C).
        places: The two rows (6,) of the map from (x, y, 1) in the result to x, and to y, in the image.
        sampling: The nearest pixel, or bilinear interpolation.
        fill: The value outside of the image: one value, or one per channel.
        size: Height and width of the result; by default those of the image.
    """
