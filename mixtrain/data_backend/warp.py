"""Affine transformations of images (H, W, C)."""

from __future__ import annotations

from typing import Any, Literal

from mixtrain.data_backend.arrays import cast, exact, numbers_to, saturate, size_of, sized, space
from mixtrain.typing import Tensor

Sampling = Literal["nearest", "linear"]


def floats(*values: Any) -> tuple[Any, list[Tensor]]:
    """Return a namespace with `cos`, `sin`, `tan` and `stack`, and values as its float32 tensors."""
    xp, *arrays = space(*values)
    return xp, [cast(value, "float32") for value in arrays]


def warp(
    image: Tensor, places: Tensor, sampling: Sampling, fill: tuple[float, ...],
    size: tuple[Tensor | int, Tensor | int] | None = None,
) -> Tensor:
    """Transform an image by an affine map.

    Positions between pixels are rounded to 1/32 of a pixel, as in OpenCV.

    `image`: (H, W, C). `places`: The two rows (6,) of the map from (x, y, 1) in the result to x, and to y, in the
    image. `sampling`: The nearest pixel, or bilinear interpolation. `fill`: The value outside of the image: one value,
    or one per channel. `size`: Height and width of the result; by default those of the image.
    """
    xp, image, places = space(image, places)
    height, width = size_of(image) if size is None else size
    x = numbers_to(width, "float32")[None, :]
    y = numbers_to(height, "float32")[:, None]
    unit = 1024.0 if sampling == "nearest" else 32.0
    across, down = (
        _rounded_sum(xp, a * x, cast(exact(b) * y + c, "float32"), unit)
        for a, b, c in ((places[0], places[1], places[2]), (places[3], places[4], places[5]))
    )
    border = xp.asarray(fill, "float32")
    left, top = xp.floor(across), xp.floor(down)
    if sampling == "nearest":
        result = _pixels(xp, image, top, left, border)
    else:
        right, low = (across - left)[..., None], (down - top)[..., None]
        upper, lower = (
            _pixels(xp, image, row, left, border) * (1 - right) + _pixels(xp, image, row, left + 1, border) * right
            for row in (top, top + 1)
        )
        result = upper * (1 - low) + lower * low
    return sized(saturate(result, image.dtype), height, width, image.shape[-1])


def _rounded_sum(xp: Any, first: Tensor, second: Tensor, unit: float) -> Tensor:
    """Return the sum of two values rounded to 1/1024, rounded to `unit` / 1024."""
    total = xp.round(first * 1024.0) + xp.round(second * 1024.0)
    return xp.floor((total + unit / 2.0) / unit) * unit / 1024.0


def _pixels(xp: Any, image: Tensor, rows: Tensor, columns: Tensor, border: Tensor) -> Tensor:
    """Return the pixels at rows and columns as float32, with `border` for those outside of the image."""
    height, width = size_of(image)
    row, column = cast(rows, "int32"), cast(columns, "int32")
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    flat = xp.reshape(image, (height * width, image.shape[-1] or -1))
    index = xp.clip(row, 0, height - 1) * width + xp.clip(column, 0, width - 1)
    return xp.where(inside[..., None], cast(xp.take(flat, index, axis=0), "float32"), border)
