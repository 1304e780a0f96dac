"""Colors of images (H, W, C): brightness, contrast, saturation, hue, tone curves, blurs, with OpenCV's rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import jax.numpy as jnp
import numpy as np

from mixtrain.data_backend.jax.array_namespace import exact, space
from mixtrain.data_backend.jax.images import saturate
from mixtrain.typing import Tensor

# OpenCV's weights of red, green and blue in fixed point, with so many fractional bits.
_GREY_BITS = 15
_GREY = (9798, 19235, 3735)


def scale_values(values: Tensor, factor: Tensor | float, shift: Tensor | float) -> Tensor:
    _, values = space(values)
    return (exact(values.astype(np.float32)) * np.float32(factor) + np.float32(shift)).astype(np.float32)


def normalize(values: Tensor, mean: np.ndarray, deviation: np.ndarray) -> Tensor:
    return (jnp.asarray(values).astype(np.float32) - mean) / deviation


def blend(first: Tensor, second: Tensor, share: Tensor | float) -> Tensor:
    xp, first, second, share = space(first, second, share)
    share = xp.asarray(share, np.float32)
    first, second = xp.asarray(first), xp.asarray(second)
    mixed = exact(first.astype(np.float32)) * share + exact(second.astype(np.float32)) * (1 - share)
    return saturate(mixed.astype(np.float32), first.dtype)


def brighten(image: Tensor, factor: Tensor | float) -> Tensor:
    xp, image, factor = space(image, factor)
    return saturate(image.astype(np.float32) * xp.asarray(factor, np.float32), image.dtype)


def grayscale(image: Tensor) -> Tensor:
    xp, image = space(image)
    if np.issubdtype(image.dtype, np.integer):
        weighted = image[..., :3].astype(np.int32) * np.array(_GREY, np.int32)
        total = xp.sum(weighted, axis=-1, keepdims=True, dtype=np.int32)
        return ((total + (1 << (_GREY_BITS - 1))) // (1 << _GREY_BITS)).astype(image.dtype)
    weights = np.array((0.299, 0.587, 0.114), image.dtype)
    return xp.sum(image[..., :3] * weights, axis=-1, keepdims=True)


def contrast(image: Tensor, factor: Tensor | float) -> Tensor:
    xp, image = space(image)
    mean = xp.floor(xp.mean(exact(grayscale(image))) + 0.5)
    return blend(image, mean, factor)


def saturation(image: Tensor, factor: Tensor | float) -> Tensor:
    return blend(image, grayscale(image), factor)


def hue(image: Tensor, turn: Tensor | float) -> Tensor:
    xp, image, turn = space(image, turn)
    is_integer = np.issubdtype(image.dtype, np.integer)
    values = rgb_to_hsv(image.astype(np.float32) / np.float32(255.0 if is_integer else 1.0))
    angle, strength = values[..., 0], values[..., 1]
    turn = xp.asarray(turn, np.float32)
    if is_integer:
        steps = xp.trunc(turn * np.float32(255.0))  # Truncated towards 0.
        angle = xp.mod(xp.round(angle * np.float32(256.0)) + steps, np.float32(256.0)) / np.float32(255.0)
        turn, strength = np.float32(0.0), xp.round(strength * np.float32(255.0)) / np.float32(255.0)
    hsv = xp.stack([xp.mod(angle + turn, np.float32(1.0)), strength, values[..., 2]], axis=-1)
    result = hsv_to_rgb(hsv)
    return saturate(result * np.float32(255.0) if is_integer else result, image.dtype)


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


def invert(image: Tensor) -> Tensor:
    return np.asarray(255).astype(image.dtype) - image


def solarize(image: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
    xp, image, low, high = space(image, low, high)
    values = image.astype(np.float32)
    return xp.where((values >= low) & (values <= high), invert(image), image)


def posterize(image: Tensor, bits: Tensor) -> Tensor:
    xp, image, bits = space(image, bits)
    step = xp.left_shift(np.int32(1), 8 - xp.asarray(bits, np.int32))
    return (image.astype(np.int32) // step * step).astype(image.dtype)


def equalize(image: Tensor, *, like_pillow: bool = False) -> Tensor:
    levels = np.arange(256)

    def by_pillow(xp: ModuleType, counts: Tensor) -> Tensor:
        last = xp.max(xp.where(counts > 0, levels, 0))
        step = (xp.sum(counts) - counts[last]) // 255
        previous = xp.cumsum(counts) - counts
        equalized = xp.minimum((step // 2 + previous) // xp.maximum(step, 1), 255)
        return xp.where(step == 0, levels, equalized)

    def by_opencv(xp: ModuleType, counts: Tensor) -> Tensor:
        first = xp.min(xp.where(counts > 0, levels, 255))
        others = xp.sum(counts) - counts[first]
        scale = np.float32(255.0) / xp.maximum(others, 1).astype(np.float32)
        equalized = xp.round((xp.cumsum(counts) - counts[first]).astype(np.float32) * scale)
        return xp.where(others == 0, levels, xp.clip(equalized, 0.0, 255.0).astype(np.int32))

    return _by_table(image, by_pillow if like_pillow else by_opencv)


def auto_contrast(image: Tensor, cutoff: float, ignore: Sequence[int]) -> Tensor:
    levels = np.arange(256)

    def table(xp: ModuleType, counts: Tensor) -> Tensor:
        for value in ignore:
            counts = xp.where(levels == value, 0, counts)
        cut = (xp.sum(counts).astype(np.float32) * np.float32(cutoff / 100.0)).astype(np.int32)
        low = xp.min(xp.where(xp.cumsum(counts) > cut, levels, 255))
        high = xp.max(xp.where(xp.cumsum(counts[::-1])[::-1] > cut, levels, 0))
        stretched = (levels - low) * 255 // xp.maximum(high - low, 1)
        return xp.where(high <= low, levels, xp.clip(stretched, 0, 255))

    return _by_table(image, table)


def _by_table(image: Tensor, table: Callable[[ModuleType, Tensor], Tensor]) -> Tensor:
    """Map the values of each channel by the table that `table` computes from its histogram."""
    xp, image = space(image)
    planes = []
    for channel in range(image.shape[-1]):
        plane = image[..., channel].astype(np.int32)
        counts = xp.bincount(plane.reshape(-1), minlength=256, **({} if xp is np else {"length": 256}))
        planes.append(xp.take(table(xp, counts), plane).astype(image.dtype))
    return xp.stack(planes, axis=-1)


def smooth(image: Tensor) -> Tensor:
    xp, image = space(image)
    values = image.astype(np.float32)
    rows, columns = values.shape[0], values.shape[1]
    padded = xp.pad(values, [(1, 1), (1, 1), (0, 0)])
    total = sum(padded[row : row + rows, column : column + columns] for row in range(3) for column in range(3))
    mean = (total + 4 * values) * np.float32(1.0 / 13.0)
    mixed = xp.where(_inside(image, 1, 1, rows - 1, columns - 1), mean, values)
    return saturate(mixed, image.dtype)


def blur(image: Tensor, across: Sequence[float], down: Sequence[float]) -> Tensor:
    xp, image = space(image)
    rows, columns = image.shape[0], image.shape[1]
    sides, ends = len(across) // 2, len(down) // 2
    values = xp.pad(exact(image.astype(np.float32)), [(ends, ends), (sides, sides), (0, 0)], mode="reflect")
    values = sum(np.float32(weight) * values[:, start : start + columns] for start, weight in enumerate(across))
    values = exact(values.astype(np.float32))
    values = sum(np.float32(weight) * values[start : start + rows] for start, weight in enumerate(down))
    return saturate(values.astype(np.float32), image.dtype)


def fill_box(
    image: Tensor, top: Tensor | int, left: Tensor | int, bottom: Tensor | int, right: Tensor | int,
    value: Tensor | float,
) -> Tensor:
    xp, image, top, left, bottom, right, value = space(image, top, left, bottom, right, value)
    return xp.where(_inside(image, top, left, bottom, right), xp.asarray(value).astype(image.dtype), image)


def _inside(image: Tensor, top: Tensor | int, left: Tensor | int, bottom: Tensor | int, right: Tensor | int) -> Tensor:
    """Whether the pixels of (H, W, C) are in a range of rows and columns, bools (H, W, 1)."""
    rows = np.arange(image.shape[0])[:, None, None]
    columns = np.arange(image.shape[1])[None, :, None]
    return (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)


# The principal components of the colors in ImageNet, and their magnitudes.
_COMPONENTS = np.array(
    ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203)), np.float32
)
_MAGNITUDES = np.array((55.46, 4.794, 1.148), np.float32)


def pca_lighting(image: Tensor, amounts: Tensor) -> Tensor:
    _, image, amounts = space(image, amounts)
    added = (exact(_COMPONENTS) * (amounts * _MAGNITUDES)).sum(axis=1).astype(np.float32)
    return saturate(image.astype(np.float32) + added, image.dtype)
