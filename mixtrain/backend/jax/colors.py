"""Colors of images (H, W, C): brightness, contrast, saturation, hue, tone curves, blurs, with OpenCV's rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from mixtrain.backend.jax.images import saturate
from mixtrain.backend.jax.array_namespace import exact, space

_GREY_BITS = 15
_GREY = (9798, 19235, 3735)


def scale_values(values: Any, factor: Any, shift: Any) -> Any:
    """Return ``values * factor + shift`` in float32."""
    _, values = space(values)
    return (exact(values.astype(np.float32)) * np.float32(factor) + np.float32(shift)).astype(np.float32)


def normalize(values: Any, mean: np.ndarray, deviation: np.ndarray) -> Any:
    """Return ``(values - mean) / deviation`` in float32, the two in a shape that fits the last axes of `values`."""
    return (jnp.asarray(values).astype(np.float32) - mean) / deviation


def blend(first: Any, second: Any, share: Any) -> Any:
    """Return ``first * share + second * (1 - share)`` in the first's dtype; `share` may be beyond 0 and 1."""
    xp, first, second, share = space(first, second, share)
    share = xp.asarray(share, np.float32)
    first, second = xp.asarray(first), xp.asarray(second)
    mixed = exact(first.astype(np.float32)) * share + exact(second.astype(np.float32)) * (1 - share)
    return saturate(mixed.astype(np.float32), first.dtype)


def brighten(image: Any, factor: Any) -> Any:
    """Return the image with all values times `factor`."""
    xp, image, factor = space(image, factor)
    return saturate(image.astype(np.float32) * xp.asarray(factor, np.float32), image.dtype)


def grey(image: Any) -> Any:
    """Return the brightness of red, green and blue, (..., 1), in the image's dtype."""
    xp, image = space(image)
    if np.issubdtype(image.dtype, np.integer):
        weighted = image[..., :3].astype(np.int32) * np.array(_GREY, np.int32)
        total = xp.sum(weighted, axis=-1, keepdims=True, dtype=np.int32)
        return ((total + (1 << (_GREY_BITS - 1))) // (1 << _GREY_BITS)).astype(image.dtype)
    weights = np.array((0.299, 0.587, 0.114), image.dtype)
    return xp.sum(image[..., :3] * weights, axis=-1, keepdims=True)


def contrast(image: Any, factor: Any) -> Any:
    """Return the image farther from its mean brightness by `factor`."""
    xp, image = space(image)
    mean = xp.floor(xp.mean(exact(grey(image))) + 0.5)
    return blend(image, mean, factor)


def saturation(image: Any, factor: Any) -> Any:
    """Return the image with its colors stronger by `factor`; 0 leaves greys."""
    return blend(image, grey(image), factor)


def hue(image: Any, turn: Any) -> Any:
    """Return the image with its hues turned by a share `turn` of the circle, from -0.5 to 0.5.

    Of integer images hues are kept in 256 steps and saturations in 255, as OpenCV keeps them.
    """
    xp, image, turn = space(image, turn)
    whole = np.issubdtype(image.dtype, np.integer)
    values = rgb_to_hsv(image.astype(np.float32) / np.float32(255.0 if whole else 1.0))
    angle, strength = values[..., 0], values[..., 1]
    turn = xp.asarray(turn, np.float32)
    if whole:
        steps = xp.trunc(turn * np.float32(255.0))  # Cut off towards 0.
        angle = xp.mod(xp.round(angle * np.float32(256.0)) + steps, np.float32(256.0)) / np.float32(255.0)
        turn, strength = np.float32(0.0), xp.round(strength * np.float32(255.0)) / np.float32(255.0)
    turned = xp.stack([xp.mod(angle + turn, np.float32(1.0)), strength, values[..., 2]], axis=-1)
    result = hsv_to_rgb(turned)
    return saturate(result * np.float32(255.0) if whole else result, image.dtype)


def rgb_to_hsv(image: Any) -> Any:
    """Return hue, saturation and value, each from 0 to 1, of red, green and blue from 0 to 1."""
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


def hsv_to_rgb(image: Any) -> Any:
    """Return red, green and blue of hue, saturation and value."""
    xp, image = space(image)
    angle, strength, value = image[..., 0:1], image[..., 1:2], image[..., 2:3]
    turns = angle * 6
    near = xp.concatenate([xp.abs(turns - 3) - 1, 2 - xp.abs(turns - 2), 2 - xp.abs(turns - 4)], axis=-1)
    return ((1 - strength + xp.clip(near, 0, 1) * strength) * value).astype(image.dtype)


def invert(image: Any) -> Any:
    """Return 255 minus the values."""
    return np.asarray(255).astype(image.dtype) - image


def solarize(image: Any, low: Any, high: Any) -> Any:
    """Return the image with the values from `low` to `high` inverted."""
    xp, image, low, high = space(image, low, high)
    whole = image.astype(np.float32)
    return xp.where((whole >= low) & (whole <= high), invert(image), image)


def posterize(image: Any, bits: Any) -> Any:
    """Return a uint8 image with only the `bits` highest bits of each value kept."""
    xp, image, bits = space(image, bits)
    step = xp.left_shift(np.int32(1), 8 - xp.asarray(bits, np.int32))
    return (image.astype(np.int32) // step * step).astype(image.dtype)


def equalize(image: Any, *, like_pillow: bool = False) -> Any:
    """Return a uint8 image each channel of which uses all values about equally often.

    Args:
        image: (H, W, C).
        like_pillow: Whether with Pillow's steps instead of OpenCV's.
    """
    levels = np.arange(256)

    def by_pillow(xp: Any, counts: Any) -> Any:
        last = xp.max(xp.where(counts > 0, levels, 0))
        step = (xp.sum(counts) - counts[last]) // 255
        before = xp.cumsum(counts) - counts
        made = xp.minimum((step // 2 + before) // xp.maximum(step, 1), 255)
        return xp.where(step == 0, levels, made)

    def by_opencv(xp: Any, counts: Any) -> Any:
        first = xp.min(xp.where(counts > 0, levels, 255))
        others = xp.sum(counts) - counts[first]
        scale = np.float32(255.0) / xp.maximum(others, 1).astype(np.float32)
        made = xp.round((xp.cumsum(counts) - counts[first]).astype(np.float32) * scale)
        return xp.where(others == 0, levels, xp.clip(made, 0.0, 255.0).astype(np.int32))

    return _by_table(image, by_pillow if like_pillow else by_opencv)


def auto_contrast(image: Any, cutoff: float, ignore: Sequence[int]) -> Any:
    """Return a uint8 image each channel of which is stretched to 0 to 255.

    Args:
        image: (H, W, C).
        cutoff: How many per cent of the darkest and of the lightest pixels do not count.
        ignore: Values that do not count.
    """
    levels = np.arange(256)

    def table(xp: Any, counts: Any) -> Any:
        for value in ignore:
            counts = xp.where(levels == value, 0, counts)
        cut = (xp.sum(counts).astype(np.float32) * np.float32(cutoff / 100.0)).astype(np.int32)
        low = xp.min(xp.where(xp.cumsum(counts) > cut, levels, 255))
        high = xp.max(xp.where(xp.cumsum(counts[::-1])[::-1] > cut, levels, 0))
        made = (levels - low) * 255 // xp.maximum(high - low, 1)
        return xp.where(high <= low, levels, xp.clip(made, 0, 255))

    return _by_table(image, table)


def _by_table(image: Any, table: Callable[[Any, Any], Any]) -> Any:
    """Return the image with each channel's values replaced by the table that its histogram gives."""
    xp, image = space(image)
    planes = []
    for channel in range(image.shape[-1]):
        plane = image[..., channel].astype(np.int32)
        counts = xp.bincount(plane.reshape(-1), minlength=256, **({} if xp is np else {"length": 256}))
        planes.append(xp.take(table(xp, counts), plane).astype(image.dtype))
    return xp.stack(planes, axis=-1)


def smooth(image: Any) -> Any:
    """Return the image averaged over 3 x 3 pixels, the middle one five times; its edge stays."""
    xp, image = space(image)
    values = image.astype(np.float32)
    rows, columns = values.shape[0], values.shape[1]
    wide = xp.pad(values, [(1, 1), (1, 1), (0, 0)])
    total = sum(wide[row : row + rows, column : column + columns] for row in range(3) for column in range(3))
    averaged = (total + 4 * values) * np.float32(1.0 / 13.0)
    mixed = xp.where(_inside(image, 1, 1, rows - 1, columns - 1), averaged, values)
    return saturate(mixed, image.dtype)


def blur(image: Any, across: Sequence[float], down: Sequence[float]) -> Any:
    """Return the image averaged with weights from left to right and from top to bottom, mirrored at its edge."""
    xp, image = space(image)
    rows, columns = image.shape[0], image.shape[1]
    sides, ends = len(across) // 2, len(down) // 2
    values = xp.pad(exact(image.astype(np.float32)), [(ends, ends), (sides, sides), (0, 0)], mode="reflect")
    values = sum(np.float32(share) * values[:, place : place + columns] for place, share in enumerate(across))
    values = exact(values.astype(np.float32))
    values = sum(np.float32(share) * values[place : place + rows] for place, share in enumerate(down))
    return saturate(values.astype(np.float32), image.dtype)


def fill_box(image: Any, top: Any, left: Any, bottom: Any, right: Any, value: Any) -> Any:
    """Return (H, W, C) with the rows `top` to `bottom` and columns `left` to `right` (without the last) replaced."""
    xp, image, top, left, bottom, right, value = space(image, top, left, bottom, right, value)
    return xp.where(_inside(image, top, left, bottom, right), xp.asarray(value).astype(image.dtype), image)


def _inside(image: Any, top: Any, left: Any, bottom: Any, right: Any) -> Any:
    """Return where in (H, W, C) rows and columns are in a range, as bools (H, W, 1)."""
    rows = np.arange(image.shape[0])[:, None, None]
    columns = np.arange(image.shape[1])[None, :, None]
    return (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)


# The directions in which the colors of photographs differ, and by how much (ImageNet's principal components).
_DIRECTIONS = np.array(
    ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203)), np.float32
)
_LENGTHS = np.array((55.46, 4.794, 1.148), np.float32)


def light(image: Any, amounts: Any) -> Any:
    """Return the image with an amount of each of three colors added."""
    _, image, amounts = space(image, amounts)
    added = (exact(_DIRECTIONS) * (amounts * _LENGTHS)).sum(axis=1).astype(np.float32)
    return saturate(image.astype(np.float32) + added, image.dtype)
