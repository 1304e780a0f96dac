"""Pooling to a given size: windows that share an axis out as evenly as they can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras


def pool_to(last: Any, sizes: Sequence[int], reduce: Callable[..., Any]) -> Any:
    """Reduce channels-last values to `sizes` windows along the axes after the first.

    Window i of n along an axis of length m goes from floor(i m / n) to ceil((i + 1) m / n).

    Args:
        last: Values (N, ..., C) of known sizes.
        sizes: The wanted sizes, one for each axis between the first and the last.
        reduce: `keras.ops.mean` or `keras.ops.max`, which may go axis by axis.

    Example:
        >>> import numpy as np
        >>> pool_to(np.arange(5.0).reshape(1, 5, 1), (2,), keras.ops.mean).numpy().ravel().tolist()
        [1.0, 3.0]
    """
    for axis, count in enumerate(sizes, start=1):
        length = last.shape[axis]
        edges = [(place * length // count, -(-(place + 1) * length // count)) for place in range(count)]
        windows = [last[(slice(None),) * axis + (slice(begin, end),)] for begin, end in edges]
        last = keras.ops.stack([reduce(window, axis=axis) for window in windows], axis=axis)
    return last
