"""Images (H, W, C) seen through an affine map: rotation, shear, scale and shift."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mixtrain.backend.jax.images import saturate, size_of
from mixtrain.backend.jax.space import exact, known_size, space

Sampling = Literal["nearest", "linear"]


def rotation(degrees: Any, center: tuple[Any, Any], shift: tuple[Any, Any] = (0.0, 0.0)) -> Any:
    """Return the map, from a place in the result to one in the image, of a turn against the clock.

    Args:
        degrees: The angle.
        center: x and y of what stays; `shift` moves it afterwards.
        shift: By how much the result is moved.
    """
    xp, (angle,) = _angles(degrees)
    cosine, sine = xp.cos(angle), xp.sin(angle)
    return _around(center, shift, cosine, -sine, sine, cosine)


def affine(degrees: Any, center: tuple[Any, Any], shift: tuple[Any, Any], scale: Any, shear: tuple[Any, Any]) -> Any:
    """Return the map, from result to image, of shear, scale, a turn with the clock and a shift."""
    xp, (angle, across, down) = _angles(degrees, *shear)
    a = xp.cos(angle - down) / xp.cos(down)
    b = -xp.cos(angle - down) * xp.tan(across) / xp.cos(down) - xp.sin(angle)
    c = xp.sin(angle - down) / xp.cos(down)
    d = -xp.sin(angle - down) * xp.tan(across) / xp.cos(down) + xp.cos(angle)
    # Of determinant 1, so that its inverse needs no division but by the scale.
    return _around(center, shift, d / scale, -b / scale, -c / scale, a / scale)


def _angles(*degrees: Any) -> tuple[Any, list[Any]]:
    xp, *values = space(*degrees)
    return xp, [xp.asarray(value, np.float32) * np.float32(3.141592653589793 / 180.0) for value in values]


def _around(center: tuple[Any, Any], shift: tuple[Any, Any], a: Any, b: Any, c: Any, d: Any) -> Any:
    xp, *values = space(*center, *shift, a, b, c, d)
    x, y, to_x, to_y, a, b, c, d = (xp.asarray(value, np.float32) for value in values)
    to_x, to_y = x + to_x, y + to_y
    return xp.stack([a, b, x - a * to_x - b * to_y, c, d, y - c * to_x - d * to_y])


def warp(
    image: Any, places: Any, sampling: Sampling, fill: tuple[float, ...], size: tuple[Any, Any] | None = None
) -> Any:
    """Return the image whose pixel at a place is the given image's at the place that the map gives.

    Places between pixels count in steps of a 32nd of a pixel, as in OpenCV.

    Args:
        image: (H, W, C).
        places: What `rotation` or `affine` returned.
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
