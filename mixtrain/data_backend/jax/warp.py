"""Affine transformations of images (H, W, C)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from mixtrain.data_backend.interface.warp import Sampling
from mixtrain.data_backend.jax.array_namespace import exact, known_size, space
from mixtrain.data_backend.jax.images import saturate, size_of
from mixtrain.typing import Tensor


def floats(*values: Any) -> tuple[ModuleType, list[Tensor]]:
    xp, *arrays = space(*values)
    return xp, [xp.asarray(value, np.float32) for value in arrays]


def warp(
    image: Tensor, places: Tensor, sampling: Sampling, fill: tuple[float, ...],
    size: tuple[Tensor | int, Tensor | int] | None = None,
) -> Tensor:
    xp, image, places = space(image, places)
    height, width = map(known_size, size_of(image) if size is None else size)
    x = np.arange(width, dtype=np.float32)[None, :]
    y = np.arange(height, dtype=np.float32)[:, None]
    unit = 1024.0 if sampling == "nearest" else 32.0
    across, down = (
        _rounded_sum(xp, a * x, (exact(b) * y + c).astype(np.float32), unit) for a, b, c in (places[:3], places[3:])
    )
    border = np.asarray(fill, np.float32)
    left, top = xp.floor(across), xp.floor(down)
    if sampling == "nearest":
        return saturate(_pixels(xp, image, top, left, border), image.dtype)
    right, low = (across - left)[..., None], (down - top)[..., None]
    upper, lower = (
        _pixels(xp, image, row, left, border) * (1 - right) + _pixels(xp, image, row, left + 1, border) * right
        for row in (top, top + 1)
    )
    return saturate(upper * (1 - low) + lower * low, image.dtype)


def _rounded_sum(xp: ModuleType, first: Tensor, second: Tensor, unit: float) -> Tensor:
    """Return the sum of two values rounded to 1/1024, rounded to `unit` / 1024."""
    total = xp.round(first * 1024.0) + xp.round(second * 1024.0)
    return xp.floor((total + unit / 2.0) / unit) * unit / 1024.0


def _pixels(xp: ModuleType, image: Tensor, rows: Tensor, columns: Tensor, border: np.ndarray) -> Tensor:
    """Return the pixels at rows and columns as float32, with `border` for those outside of the image."""
    height, width = size_of(image)
    row, column = rows.astype(np.int32), columns.astype(np.int32)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    flat = xp.reshape(image, (height * width, image.shape[2]))
    index = xp.clip(row, 0, height - 1) * width + xp.clip(column, 0, width - 1)
    return xp.where(inside[..., None], xp.take(flat, index, axis=0).astype(np.float32), border)
