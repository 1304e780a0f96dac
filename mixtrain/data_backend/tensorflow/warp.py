"""Affine transformations of images (H, W, C)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from mixtrain.data_backend.interface.warp import Sampling
from mixtrain.data_backend.tensorflow.images import saturate, size_of
from mixtrain.typing import Tensor


def floats(*values: Any) -> tuple[Any, list[Tensor]]:
    return tf, [tf.cast(value, tf.float32) for value in values]


def warp(
    image: Tensor, places: Tensor, sampling: Sampling, fill: tuple[float, ...],
    size: tuple[Tensor | int, Tensor | int] | None = None,
) -> Tensor:
    height, width = size_of(image) if size is None else size
    x = tf.range(tf.cast(width, tf.float32))[None, :]
    y = tf.range(tf.cast(height, tf.float32))[:, None]
    unit = 1024.0 if sampling == "nearest" else 32.0
    across = _rounded_sum(places[0] * x, places[1] * y + places[2], unit)
    down = _rounded_sum(places[3] * x, places[4] * y + places[5], unit)
    border = tf.constant(fill, tf.float32)
    left, top = tf.floor(across), tf.floor(down)
    if sampling == "nearest":
        result = _pixels(image, top, left, border)
    else:
        right, low = (across - left)[..., None], (down - top)[..., None]
        upper = _pixels(image, top, left, border) * (1 - right) + _pixels(image, top, left + 1, border) * right
        lower = _pixels(image, top + 1, left, border) * (1 - right) + _pixels(image, top + 1, left + 1, border) * right
        result = upper * (1 - low) + lower * low
    sizes = [value if isinstance(value, int) else None for value in (height, width)]
    return tf.ensure_shape(saturate(result, image.dtype), [*sizes, image.shape[-1]])


def _rounded_sum(first: Tensor, second: Tensor, unit: float) -> Tensor:
    """Return the sum of two values rounded to 1/1024, rounded to `unit` / 1024."""
    total = tf.round(first * 1024.0) + tf.round(second * 1024.0)
    return tf.floor((total + unit / 2.0) / unit) * unit / 1024.0


def _pixels(image: Tensor, rows: Tensor, columns: Tensor, border: Tensor) -> Tensor:
    """Return the pixels at rows and columns as float32, with `border` for those outside of the image."""
    height, width = tf.shape(image)[0], tf.shape(image)[1]
    row, column = tf.cast(rows, tf.int32), tf.cast(columns, tf.int32)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    flat = tf.reshape(image, [height * width, tf.shape(image)[2]])
    index = tf.clip_by_value(row, 0, height - 1) * width + tf.clip_by_value(column, 0, width - 1)
    return tf.where(inside[..., None], tf.cast(tf.gather(flat, index), tf.float32), border)
