"""The poolings themselves, of channels-last images: what the operations and the layers both compute."""

from __future__ import annotations

import math
from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.ops.windows import NO_SIDES, Pair, Sides, Window, pad, same_sides

_LAST: Final = "channels_last"


def largest(last: Any, size: Window, step: Window, mode: str = "valid") -> Any:
    """Return the largest number of each window; `mode` is "valid" or "same"."""
    return backend.pool(lambda last: keras.ops.max_pool(last, size, step, mode, _LAST), last)


def means(last: Any, size: Window, step: Window, mode: str = "valid") -> Any:
    """Return the mean of each window; with "same", of those elements that it has of the image."""
    return backend.pool(lambda last: keras.ops.average_pool(last, size, step, mode, _LAST), last)


def padded_means(
    last: Any, size: Pair, step: Pair, around: Sides, overrun: Sides, *, include_pad: bool, divisor: int | None
) -> Any:
    """Return the mean of each window of padded images.

    Args:
        last: Images (N, H, W, C).
        size: Window.
        step: Step of the window.
        around: Zeros around each image.
        overrun: Places beyond these, which a last, partial window lacks and no mean counts.
        include_pad: Whether means count the zeros of `around`.
        divisor: What sums are divided by in place of the number of elements counted; None for that number.
    """
    padded = means(pad(pad(last, around), overrun), size, step)
    if divisor is not None:
        return _over(padded, size, divisor)
    if overrun == NO_SIDES and (include_pad or around == NO_SIDES):
        return padded
    # The share of each window that counts.
    counted = pad(keras.ops.ones_like(last[:1, :, :, :1]), around, 1.0 if include_pad else 0.0)
    return padded / means(pad(counted, overrun), size, step)


def same_means(last: Any, size: Pair, step: Pair, divisor: int | None = None) -> Any:
    """Return the means of windows that give ceil(size / step) places; with `divisor`, their sums divided by it."""
    if divisor is None:
        return means(last, size, step, "same")
    return _over(means(pad(last, same_sides(last.shape[1:3], size, step)), size, step), size, divisor)


def _over(averages: Any, size: Pair, divisor: int) -> Any:
    return averages * (size[0] * size[1] / divisor)


def largest_by_windows(
    last: Any, size: Pair, step: Pair, gap: Pair, around: Sides, overrun: Sides, *, places: bool
) -> Any:
    """Return the largest number of each window, by laying the windows' elements side by side.

    Args:
        last: Images (N, H, W, C) of known sizes.
        size: Window.
        step: Step of the window.
        gap: Distance between the window's elements.
        around: Padding around each image, which never wins.
        overrun: Padding beyond that.
        places: Whether to return ``(largest, places)``: with each maximum its place in H * W, int64.
    """
    ops, width = keras.ops, last.shape[2]
    wide = pad(pad(last, around, -math.inf), overrun, -math.inf)
    rows, columns = (
        ops.arange(0, length - (reach - 1) * apart, one)
        for length, reach, apart, one in zip(wide.shape[1:3], size, gap, step, strict=True)
    )
    values, origins = [], []
    for down in range(0, size[0] * gap[0], gap[0]):
        for across in range(0, size[1] * gap[1], gap[1]):
            values.append(ops.take(ops.take(wide, rows + down, axis=1), columns + across, axis=2))
            down_from_top, from_left = rows + down - around[0][0], columns + across - around[1][0]
            origins.append(down_from_top[:, None] * width + from_left[None, :])
    stacked = ops.stack(values, axis=-1)
    best = ops.argmax(stacked, axis=-1)[..., None]
    found = ops.take_along_axis(stacked, best, axis=-1)[..., 0]
    if not places:
        return found
    table = ops.broadcast_to(ops.stack(origins, axis=-1)[None, :, :, None, :], ops.shape(stacked))
    return found, backend.to_tensor(ops.take_along_axis(table, best, axis=-1)[..., 0], "int64")
