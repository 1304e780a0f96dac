"""Colors of images (H, W, C): brightness, contrast, saturation, hue, tone curves, blurs, with OpenCV's rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixtrain.typing import Tensor


def scale_values(values: Tensor, factor: Tensor | float, shift: Tensor | float) -> Tensor:
    """Return ``values * factor + shift`` in float32."""

def normalize(values: Tensor, mean: np.ndarray, deviation: np.ndarray) -> Tensor:
    """Return ``(values - mean) / deviation`` in float32; both broadcast to the last axes of `values`."""

def blend(first: Tensor, second: Tensor, share: Tensor | float) -> Tensor:
    """Return ``first * share + second * (1 - share)`` in the dtype of `first`; `share` may be outside [0, 1]."""

def brighten(image: Tensor, factor: Tensor | float) -> Tensor:
    """Multiply all values of the image by `factor`."""

def grayscale(image: Tensor) -> Tensor:
    """Convert red, green and blue to gray, (..., 1), in the image's dtype."""

def contrast(image: Tensor, factor: Tensor | float) -> Tensor:
    """Scale the difference of the image to its mean gray by `factor`."""

def saturation(image: Tensor, factor: Tensor | float) -> Tensor:
    """Scale the difference of the image to its gray version by `factor`; 0 gives the gray version."""

def hue(image: Tensor, turn: Tensor | float) -> Tensor:
    """Rotate the hues of the image by `turn`, a fraction of the circle from -0.5 to 0.5.

    The hues of integer images have 256 steps and the saturations 255, as in OpenCV.
    """

def rgb_to_hsv(image: Tensor) -> Tensor:
    """Convert red, green and blue in [0, 1] to hue, saturation and value in [0, 1]."""

def hsv_to_rgb(image: Tensor) -> Tensor:
    """Convert hue, saturation and value to red, green and blue."""

def invert(image: Tensor) -> Tensor:
    """Return 255 minus the values."""

def solarize(image: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
    """Invert the values of the image from `low` to `high`."""

def posterize(image: Tensor, bits: Tensor) -> Tensor:
    """Keep only the `bits` highest bits of each value of a uint8 image."""

def equalize(image: Tensor, *, like_pillow: bool = False) -> Tensor:
    """Equalize the histogram of each channel of a uint8 image.

    Args:
        image: (H, W, C).
        like_pillow: Whether to round like Pillow instead of OpenCV.
    """

def auto_contrast(image: Tensor, cutoff: float, ignore: Sequence[int]) -> Tensor:
    """Stretch each channel of a uint8 image to the range from 0 to 255.

    Args:
        image: (H, W, C).
        cutoff: Percentage of the darkest and of the lightest pixels to ignore.
        ignore: Values to ignore.
    """

def smooth(image: Tensor) -> Tensor:
    """Average the image over 3 x 3 pixels, with weight 5 for the center; the edge stays unchanged."""

def blur(image: Tensor, across: Sequence[float], down: Sequence[float]) -> Tensor:
    """Convolve the image with weights across and down, with the edge reflected."""

def fill_box(
    image: Tensor, top: Tensor | int, left: Tensor | int, bottom: Tensor | int, right: Tensor | int,
    value: Tensor | float,
) -> Tensor:
    """Fill the rows `top` to `bottom` and columns `left` to `right` (exclusive) of (H, W, C) with a value."""

def pca_lighting(image: Tensor, amounts: Tensor) -> Tensor:
    """Add an amount of each principal component of colors to the image."""
