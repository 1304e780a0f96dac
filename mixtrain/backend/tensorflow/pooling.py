"""Pooling of half tensors by the kernels that a device has: float32 ones on half values, where those are faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from mixtrain.backend.tensorflow.by_float32 import by_float32, has_kernels
from mixtrain.backend.tensorflow.device import describe_device


def pool(function: Callable[[Any], Any], x: Any) -> Any:
    """Return ``function(x)``, a pooling: the largest number or the mean of each window.

    On CPU float16 has kernels of one thread alone, whose gradient takes seven times as long as that of float32; so the
    float32 kernels are given the half values. The backward pass does the same, from the half tensor: no float32 copy is
    held for it.

    Args:
        function: Takes a tensor and returns one of its format.
        x: A tensor.
    """
    x = tf.convert_to_tensor(x)
    return function(x) if has_kernels(x.dtype.name, describe_device()) else by_float32(function, x)
