"""NumPy arrays at a place in memory that TensorFlow and JAX take over on a CPU, where they copy others."""

from __future__ import annotations

from typing import Final

import numpy as np

# Both take over what begins at a multiple of it.
_ALIGNMENT: Final = 64


def aligned_empty(count: int, value: np.ndarray) -> np.ndarray:
    """Return an array for `count` values like one, aligned where they are numbers; its `base` owns the memory.

    Args:
        count: How many values.
        value: One of them; only its shape and dtype are looked at.
    """
    if value.dtype.kind in "USO":
        return np.empty((count, *value.shape), value.dtype)
    size = count * value.nbytes
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(value.dtype).reshape(count, *value.shape)


def aligned_copy(value: np.ndarray) -> np.ndarray:
    """Return a copy of an array, aligned where it holds numbers."""
    (copy,) = aligned_empty(1, value)
    copy[...] = value
    return copy  # type: ignore[no-any-return]
