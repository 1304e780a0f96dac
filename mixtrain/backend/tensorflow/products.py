"""Products of half tensors on devices without half arithmetic: float32 kernels on half values, the result rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from mixtrain.backend.info import DeviceInfo
from mixtrain.backend.tensorflow.by_float32 import by_float32
from mixtrain.backend.tensorflow.device import describe_device
from mixtrain.dtype import bfloat16, float16


def product(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Return ``function(x, y)``, a function that is linear in each of two tensors (a convolution, a matrix product).

    Units for half arithmetic multiply half numbers, sum in float32 and round the sum. Where the device has none, its
    emulated kernels do the same many times slower than its float32 kernels (six convolutions with batch normalization,
    a step on a CPU of 2 cores, against float32: bfloat16 3.2 times, by way of here 0.7; float16 compiled by XLA 2.7
    times, by way of here 1.2). So the float32 kernels are given the half values. The backward pass does the same, from
    the half tensors: no float32 copy is held for it.

    Args:
        function: Takes two tensors of one format and returns one of that format.
        x: A tensor.
        y: A tensor of the same format.
    """
    x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
    if x.dtype != y.dtype or multiplies(x.dtype.name, describe_device()):
        return function(x, y)
    return by_float32(function, x, y)


def times_transposed(x: Any, weight: Any) -> Any:
    """Return ``x @ weight.T`` of two matrices of one format; no transposed copy of the weight is made."""
    return product(lambda x, weight: tf.matmul(x, weight, transpose_b=True), x, weight)


def multiplies(dtype: str, device: DeviceInfo) -> bool:
    """Whether a device has fast kernels for products of a format."""
    if device.kind != "CPU" or dtype not in (float16, bfloat16):
        return True
    return dtype == bfloat16 and device.fast_bfloat16
