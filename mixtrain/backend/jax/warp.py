"""Images (H, W, C) seen through an affine map."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mixtrain.backend.jax.images import saturate, size_of
from mixtrain.backend.jax.array_namespace import exact, known_size, space

Sampling = Literal["nearest", "linear"]


def floats(*values: Any) -> tuple[Any, list[Any]]:
    """Return a namespace with `cos`, `sin`, `tan` and `stack`, and numbers as float32 of the kind that it takes."""
    xp, *found = space(*values)
    return xp, [xp.asarray(value, np.float32) for value in found]


def warp(
    image: Any, places: Any, sampling: Sampling, fill: tuple[float, ...], size: tuple[Any, Any] | None = None
) -> Any:
    """Return the image whose pixel at a place is the given image's at the place that the map gives.

    Places between pixels count in steps of a 32nd of a pixel, as in OpenCV.

    Args:
        image: (H, W, C).
        places: Its two rows (6,): from x, y and 1 in the result to x, and to y, in the image.
        sampling: The nearest pixel, or a mean of four.
        fill: What is beyond the border: one value, or one per channel.
        size: Height and width of the result; by default those of the image.
    """
    xp, image, places = space(image, places)
    height, width = map(known_size, size_of(image) if size is None else size)
    x = np.arange(width, dtype=np.float32)[None, :]
    y = np.arange(height, dtype=np.float32)[:, None]
    coarse = 1024.0 if sampling == "nearest" else 32.0
    across, down = (
        _steps(xp, a * x, (exact(b) * y + c).astype(np.float32), coarse) for a, b, c in (places[:3], places[3:])
    )
    beyond = np.asarray(fill, np.float32)
    left, top = xp.floor(across), xp.floor(down)
    if sampling == "nearest":
        return saturate(_pixels(xp, image, top, left, beyond), image.dtype)
    right, low = (across - left)[..., None], (down - top)[..., None]
    upper, lower = (
        _pixels(xp, image, row, left, beyond) * (1 - right) + _pixels(xp, image, row, left + 1, beyond) * right
        for row in (top, top + 1)
    )
    return saturate(upper * (1 - low) + lower * low, image.dtype)


def _steps(xp: Any, first: Any, second: Any, coarse: float) -> Any:
    """Return the sum of two numbers that are rounded to 1024ths, in steps of `coarse` 1024ths."""
    total = xp.round(first * 1024.0) + xp.round(second * 1024.0)
    return xp.floor((total + coarse / 2.0) / coarse) * coarse / 1024.0


def _pixels(xp: Any, image: Any, rows: Any, columns: Any, beyond: np.ndarray) -> Any:
    """Return the pixels at rows and columns, as float32; those outside the image are `beyond`."""
    height, width = size_of(image)
    row, column = rows.astype(np.int32), columns.astype(np.int32)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    flat = xp.reshape(image, (height * width, image.shape[2]))
    index = xp.clip(row, 0, height - 1) * width + xp.clip(column, 0, width - 1)
    return xp.where(inside[..., None], xp.take(flat, index, axis=0).astype(np.float32), beyond)
