"""Colors of images (H, W, C): the kernels that TensorFlow has, or computes in a way of its own, in NumPy's terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np

from mixtrain.data_backend.jax.array_namespace import exact, saturate, space
from mixtrain.typing import Tensor


def normalize(values: Tensor, mean: np.ndarray, deviation: np.ndarray) -> Tensor:
    return (jnp.asarray(values).astype(np.float32) - mean) / deviation


def rgb_to_hsv(image: Tensor) -> Tensor:
    xp, image = space(image)
    red, green, blue = image[..., 0], image[..., 1], image[..., 2]
    value = xp.max(image, axis=-1)
    spread = value - xp.min(image, axis=-1)
    strength = xp.where(value > 0, spread / xp.where(value > 0, value, 1), 0)
    part = 1 / (6 * xp.where(spread > 0, spread, 1))
    by_red = part * (green - blue)
    by_green = part * (blue - red) + image.dtype.type(2.0 / 6.0)
    by_blue = part * (red - green) + image.dtype.type(4.0 / 6.0)
    angle = xp.where(value == red, by_red, xp.where(value == green, by_green, by_blue))
    angle = xp.where(spread > 0, angle, 0)
    angle = xp.where(angle < 0, angle + 1, angle)
    return xp.stack([angle, strength, value], axis=-1).astype(image.dtype)


def hsv_to_rgb(image: Tensor) -> Tensor:
    xp, image = space(image)
    angle, strength, value = image[..., 0:1], image[..., 1:2], image[..., 2:3]
    turns = angle * 6
    pure = xp.concatenate([xp.abs(turns - 3) - 1, 2 - xp.abs(turns - 2), 2 - xp.abs(turns - 4)], axis=-1)
    return ((1 - strength + xp.clip(pure, 0, 1) * strength) * value).astype(image.dtype)


def by_table(image: Tensor, table: Callable[[Tensor], Tensor]) -> Tensor:
    xp, image = space(image)
    planes = []
    for channel in range(image.shape[-1]):
        plane = image[..., channel].astype(np.int32)
        counts = xp.bincount(plane.reshape(-1), minlength=256, **({} if xp is np else {"length": 256}))
        planes.append(xp.take(table(counts), plane).astype(image.dtype))
    return xp.stack(planes, axis=-1)


def stretched(low: Tensor, high: Tensor) -> Tensor:
    xp, low, high = space(low, high)
    return (np.arange(256) - low) * 255 // xp.maximum(high - low, 1)


def smoothed(values: Tensor) -> Tensor:
    xp, values = space(values)
    rows, columns = values.shape[0], values.shape[1]
    padded = xp.pad(values, [(1, 1), (1, 1), (0, 0)])
    total = sum(padded[row : row + rows, column : column + columns] for row in range(3) for column in range(3))
    return (total + 4 * values) * np.float32(1.0 / 13.0)


def blur(image: Tensor, across: Sequence[float], down: Sequence[float]) -> Tensor:
    xp, image = space(image)
    rows, columns = image.shape[0], image.shape[1]
    sides, ends = len(across) // 2, len(down) // 2
    values = xp.pad(exact(image.astype(np.float32)), [(ends, ends), (sides, sides), (0, 0)], mode="reflect")
    values = sum(np.float32(weight) * values[:, start : start + columns] for start, weight in enumerate(across))
    values = exact(values.astype(np.float32))
    values = sum(np.float32(weight) * values[start : start + rows] for start, weight in enumerate(down))
    return saturate(values.astype(np.float32), image.dtype)


def weighted_sum(matrix: np.ndarray, vector: Tensor) -> Tensor:
    return (exact(matrix) * vector).sum(axis=1).astype(np.float32)
