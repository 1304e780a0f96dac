"""Colors of images (H, W, C): brightness, contrast, saturation, hue, tone curves, blurs, with OpenCV's rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixtrain.data_backend.arrays import (
    blur as blur,
    by_table,
    cast,
    exact,
    hsv_to_rgb,
    is_integer,
    normalize as normalize,
    number,
    numbers_to,
    rgb_to_hsv,
    saturate,
    size_of,
    sized,
    smoothed,
    space,
    stretched,
    weighted_sum,
)
from mixtrain.typing import Tensor

# OpenCV's weights of red, green and blue in fixed point, with so many fractional bits.
_GREY_BITS = 15
_GREY = np.array((9798, 19235, 3735), np.int32)
# The principal components of the colors in ImageNet, and their magnitudes.
_COMPONENTS = np.array(
    ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203)), np.float32
)
_MAGNITUDES = np.array((55.46, 4.794, 1.148), np.float32)


def scale_values(values: Tensor, factor: Tensor | float, shift: Tensor | float) -> Tensor:
    """Return ``values * factor + shift`` in float32."""
    return cast(exact(cast(space(values)[1], "float32")) * number(factor) + number(shift), "float32")


def blend(first: Tensor, second: Tensor, share: Tensor | float) -> Tensor:
    """Return ``first * share + second * (1 - share)`` in the dtype of `first`; `share` may be outside [0, 1]."""
    _, first, second, share = space(first, second, share)
    share = number(share)
    mixed = exact(cast(first, "float32")) * share + exact(cast(second, "float32")) * (1.0 - share)
    return saturate(cast(mixed, "float32"), first.dtype)


def brighten(image: Tensor, factor: Tensor | float) -> Tensor:
    """Multiply all values of the image by `factor`."""
    _, image, factor = space(image, factor)
    return saturate(cast(image, "float32") * number(factor), image.dtype)


def grayscale(image: Tensor) -> Tensor:
    """Convert red, green and blue to gray, (..., 1), in the image's dtype."""
    xp, image = space(image)
    if is_integer(image.dtype):
        total = xp.sum(cast(image[..., :3], "int32") * _GREY, axis=-1, keepdims=True, dtype="int32")
        return cast((total + (1 << (_GREY_BITS - 1))) // (1 << _GREY_BITS), image.dtype)
    weights = cast((0.299, 0.587, 0.114), image.dtype)
    return xp.sum(image[..., :3] * weights, axis=-1, keepdims=True)


def contrast(image: Tensor, factor: Tensor | float) -> Tensor:
    """Scale the difference of the image to its mean gray by `factor`."""
    xp, image = space(image)
    mean = xp.floor(xp.mean(exact(grayscale(image))) + 0.5)
    return blend(image, mean, factor)


def saturation(image: Tensor, factor: Tensor | float) -> Tensor:
    """Scale the difference of the image to its gray version by `factor`; 0 gives the gray version."""
    return blend(image, grayscale(image), factor)


def hue(image: Tensor, turn: Tensor | float) -> Tensor:
    """Rotate the hues of the image by `turn`, a fraction of the circle from -0.5 to 0.5.

    The hues of integer images have 256 steps and the saturations 255, as in OpenCV.
    """
    xp, image, turn = space(image, turn)
    whole = is_integer(image.dtype)
    values = rgb_to_hsv(cast(image, "float32") / 255.0 if whole else cast(image, "float32"))
    angle, strength = values[..., 0], values[..., 1]
    if whole:
        steps = cast(cast(turn, "float32") * 255.0, "int32")  # Truncated towards 0.
        angle = xp.mod(xp.round(angle * 256.0) + cast(steps, "float32"), 256.0) / 255.0
        turn, strength = 0.0, xp.round(strength * 255.0) / 255.0
    hsv = xp.stack([xp.mod(angle + number(turn), 1.0), strength, values[..., 2]], axis=-1)
    result = hsv_to_rgb(hsv)
    return saturate(result * 255.0 if whole else result, image.dtype)


def invert(image: Tensor) -> Tensor:
    """Return 255 minus the values."""
    return cast(255, image.dtype) - image


def solarize(image: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
    """Invert the values of the image from `low` to `high`."""
    xp, image, low, high = space(image, low, high)
    values = cast(image, "float32")
    return xp.where((values >= cast(low, "float32")) & (values <= cast(high, "float32")), invert(image), image)


def posterize(image: Tensor, bits: Tensor) -> Tensor:
    """Keep only the `bits` highest bits of each value of a uint8 image."""
    xp, image, bits = space(image, bits)
    step = xp.left_shift(cast(1, "int32"), 8 - cast(bits, "int32"))
    return cast(cast(image, "int32") // step * step, image.dtype)


def equalize(image: Tensor, *, like_pillow: bool = False) -> Tensor:
    """Equalize the histogram of each channel of a uint8 image.

    `image`: (H, W, C). `like_pillow`: Whether to round like Pillow instead of OpenCV.
    """
    levels = numbers_to(256)

    def by_pillow(counts: Tensor) -> Tensor:
        xp, counts = space(counts)
        last = xp.max(xp.where(counts > 0, levels, 0))
        step = (xp.sum(counts) - counts[last]) // 255
        previous = xp.cumsum(counts) - counts
        equalized = xp.minimum((step // 2 + previous) // xp.maximum(step, 1), 255)
        return xp.where(step == 0, levels, equalized)

    def by_opencv(counts: Tensor) -> Tensor:
        xp, counts = space(counts)
        first = xp.min(xp.where(counts > 0, levels, 255))
        others = xp.sum(counts) - counts[first]
        scale = 255.0 / cast(xp.maximum(others, 1), "float32")
        equalized = xp.round(cast(xp.cumsum(counts) - counts[first], "float32") * scale)
        return xp.where(others == 0, levels, cast(xp.clip(equalized, 0.0, 255.0), "int32"))

    return by_table(image, by_pillow if like_pillow else by_opencv)


def auto_contrast(image: Tensor, cutoff: float, ignore: Sequence[int]) -> Tensor:
    """Stretch each channel of a uint8 image to the range from 0 to 255.

    `image`: (H, W, C). `cutoff`: Percentage of the darkest and of the lightest pixels to ignore. `ignore`: Values to
    ignore.
    """
    levels = numbers_to(256)

    def table(counts: Tensor) -> Tensor:
        xp, counts = space(counts)
        for value in ignore:
            counts = xp.where(levels == value, 0, counts)
        cut = cast(cast(xp.sum(counts), "float32") * (cutoff / 100.0), "int32")
        low = xp.min(xp.where(xp.cumsum(counts) > cut, levels, 255))
        high = xp.max(xp.where(xp.cumsum(counts[::-1])[::-1] > cut, levels, 0))
        return xp.where(high <= low, levels, xp.clip(stretched(low, high), 0, 255))

    return by_table(image, table)


def smooth(image: Tensor) -> Tensor:
    """Average the image over 3 x 3 pixels, with weight 5 for the center; the edge stays unchanged."""
    xp, image = space(image)
    values = cast(image, "float32")
    rows, columns = size_of(image)
    mixed = xp.where(_inside(image, 1, 1, rows - 1, columns - 1), smoothed(values), values)
    return sized(saturate(mixed, image.dtype), rows, columns, image.shape[-1])


def fill_box(
    image: Tensor, top: Tensor | int, left: Tensor | int, bottom: Tensor | int, right: Tensor | int,
    value: Tensor | float,
) -> Tensor:
    """Fill the rows `top` to `bottom` and columns `left` to `right` (exclusive) of (H, W, C) with a value."""
    xp, image, top, left, bottom, right, value = space(image, top, left, bottom, right, value)
    return xp.where(_inside(image, top, left, bottom, right), cast(value, image.dtype), image)


def _inside(image: Tensor, top: Tensor | int, left: Tensor | int, bottom: Tensor | int, right: Tensor | int) -> Tensor:
    """Whether the pixels of (H, W, C) are in a range of rows and columns, bools (H, W, 1)."""
    height, width = size_of(image)
    rows = numbers_to(height)[:, None, None]
    columns = numbers_to(width)[None, :, None]
    return (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)


def pca_lighting(image: Tensor, amounts: Tensor) -> Tensor:
    """Add an amount of each principal component of colors to the image."""
    _, image, amounts = space(image, amounts)
    return saturate(cast(image, "float32") + weighted_sum(_COMPONENTS, amounts * _MAGNITUDES), image.dtype)
