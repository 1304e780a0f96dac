"""Conversion between variables and the arrays of a file, in which bfloat16 is stored as its 16 bits."""

from __future__ import annotations

from typing import Any

import keras
import ml_dtypes
import numpy as np

from mixtrain import backend
from mixtrain.dtype import DType, as_dtype, bfloat16, bool_, float32, int64
from mixtrain.precision.master_weights import has_master, master_value

_PYTHON_DTYPES = {bool: bool_, int: int64, float: float32}


def dtype_of(value: Any) -> DType:
    """Return the dtype in which a value is saved: float32 for a variable with a master copy, otherwise its own."""
    if not isinstance(value, np.ndarray) and has_master(value):
        return float32
    return as_dtype(keras.backend.standardize_dtype(getattr(value, "stored_dtype", value.dtype)))


def stored(value: Any) -> Any:
    """Convert a variable, tensor, array, number or string to what a file stores."""
    if isinstance(value, str):
        return value
    if type(value) in _PYTHON_DTYPES:
        return np.asarray(value, _PYTHON_DTYPES[type(value)])
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    array = backend.to_numpy(master_value(value) if has_master(value) else value)
    if dtype_of(value) == bfloat16:
        # bfloat16 is the upper half of float32.
        return (array.view(np.uint32) >> 16).astype(np.uint16), "bfloat16"
    return np.array(array)


def restored(value: Any) -> Any:
    """Convert a stored value to an array of a dtype that tensors have; a string is returned as it is.

    An array, because the weights of a network may not fit into the memory of one device.
    """
    if isinstance(value, str):
        return value
    array = value[0].view(ml_dtypes.bfloat16) if isinstance(value, tuple) else value
    return array.astype(backend.canonical_dtype(array.dtype.name), copy=False)
