"""Products of half tensors, by float32 kernels on devices without half arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from mixtrain.backend.info import DeviceInfo
from mixtrain.backend.tensorflow.by_float32 import by_float32
from mixtrain.backend.tensorflow.device import describe_device
from mixtrain.dtype import bfloat16, float16
from mixtrain.typing import Tensor


def product(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    # Hardware for half arithmetic multiplies half numbers, sums in float32 and rounds the sum. A device without it
    # emulates that many times slower than its float32 kernels (a step of six convolutions with batch normalization on a
    # CPU of 2 cores, relative to float32: bfloat16 3.2, with this function 0.7; float16 compiled by XLA 2.7, with this
    # function 1.2). So the float32 kernels are used. The backward pass does the same from the half tensors: no float32
    # copy is kept for it.
    x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
    if x.dtype != y.dtype or multiplies(x.dtype.name, describe_device()):
        return function(x, y)
    return by_float32(function, x, y)


def times_transposed(x: Tensor, weight: Tensor) -> Tensor:
    """No transposed copy of the weight is made."""
    return product(lambda x, weight: tf.matmul(x, weight, transpose_b=True), x, weight)


def multiplies(dtype: str, device: DeviceInfo) -> bool:
    """Whether a device has fast kernels for products of a dtype."""
    if device.kind != "CPU" or dtype not in (float16, bfloat16):
        return True
    return dtype == bfloat16 and device.fast_bfloat16
