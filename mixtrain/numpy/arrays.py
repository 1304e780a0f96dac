"""How the arguments of NumPy's functions become arrays: float64 becomes float32, and int64 int32."""

from __future__ import annotations

import builtins
from typing import Final

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import is_any_tensor, tensor, to_backend_tensors
from mixtrain.typing import BackendTensor, TensorLike

_NARROWED: Final = {np.dtype("float64"): np.float32, np.dtype("int64"): np.int32}


def as_input(value: TensorLike | None) -> TensorLike | None:
    """Convert an array argument to a backend tensor; numbers stay, for they take the dtype of what they meet."""
    if is_any_tensor(value) or value is None:
        return value
    if isinstance(value, (list, tuple)) and builtins.any(map(backend.is_tensor, keras.tree.flatten(value))):
        return keras.ops.stack([as_input(item) for item in value])
    if isinstance(value, (bool, int, float)):
        return value
    return backend.to_tensor(narrow(np.asarray(value)))


def as_array(name: str, value: TensorLike) -> BackendTensor:
    """Return the argument of the function `name` as a backend tensor, numbers too."""
    if isinstance(value, (str, bytes, set, frozenset)):
        raise checks.fail_type(f"numpy.{name}", "an array must hold numbers", value, "[1, 2, 3]")
    value = as_input(to_backend_tensors(value))
    return tensor(f"numpy.{name}", narrow(np.asarray(value)) if isinstance(value, (bool, int, float)) else value)


def narrow(array: np.ndarray) -> np.ndarray:
    """Return an array of NumPy in the dtype that MindSpore has for it."""
    return array.astype(_NARROWED.get(array.dtype, array.dtype))
