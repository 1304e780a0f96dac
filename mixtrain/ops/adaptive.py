"""Adaptive pooling: windows that divide an axis as evenly as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras

from mixtrain.typing import Tensor


def pool_to(last: Tensor, sizes: Sequence[int], reduce: Callable[..., Tensor]) -> Tensor:
    """Pool channels-last values to `sizes` windows along the axes between the first and the last.

    Window i of n along an axis of length m goes from floor(i m / n) to ceil((i + 1) m / n).

    Args:
        last: Values (N, ..., C) of known sizes.
        sizes: Sizes of the output, one for each of these axes.
        reduce: `keras.ops.mean` or `keras.ops.max`, which can be applied axis by axis.

    Example:
        >>> import numpy as np
        >>> pool_to(np.arange(5.0).reshape(1, 5, 1), (2,), keras.ops.mean).numpy().ravel().tolist()
        [1.0, 3.0]
    """
    for axis, count in enumerate(sizes, start=1):
        length = last.shape[axis]
        bounds = [(index * length // count, -(-(index + 1) * length // count)) for index in range(count)]
        windows = [last[(slice(None),) * axis + (slice(start, end),)] for start, end in bounds]
        last = keras.ops.stack([reduce(window, axis=axis) for window in windows], axis=axis)
    return last
