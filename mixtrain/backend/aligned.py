"""Aligned NumPy arrays, whose memory TensorFlow and JAX use on a CPU without a copy."""

from __future__ import annotations

from typing import Final

import numpy as np

# The alignment in bytes that both require.
_ALIGNMENT: Final = 64


def aligned_empty(count: int, value: np.ndarray) -> np.ndarray:
    """Return an uninitialized array for `count` arrays like `value`, aligned if numeric; its `base` owns the memory."""
    if value.dtype.kind in "USO":
        return np.empty((count, *value.shape), value.dtype)
    size = count * value.nbytes
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(value.dtype).reshape(count, *value.shape)


def aligned_copy(value: np.ndarray) -> np.ndarray:
    """Return a copy of an array, aligned if it is numeric."""
    copy = aligned_empty(1, value).reshape(value.shape)
    copy[...] = value
    return copy
