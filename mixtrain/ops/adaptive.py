"""Adaptive pooling: windows that divide an axis as evenly as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras

from mixtrain.typing import Tensor


def pool_to(last: Tensor, sizes: Sequence[int], reduce: Callable[..., Tensor]) -> Tensor:
    """Pool channels-last values (N, ..., C) to `sizes` windows along the axes between the first and the last.

    Window i of n along an axis of length m goes from floor(i m / n) to ceil((i + 1) m / n). `reduce` is
    `keras.ops.mean` or `keras.ops.max`, which can be applied axis by axis.
    """
    for axis, count in enumerate(sizes, start=1):
        length = last.shape[axis]
        bounds = [(index * length // count, -(-(index + 1) * length // count)) for index in range(count)]
        windows = [last[(slice(None),) * axis + (slice(start, end),)] for start, end in bounds]
        last = keras.ops.stack([reduce(window, axis=axis) for window in windows], axis=axis)
    return last
