"""Pooling of half tensors, by float32 kernels where a device has no fast half kernels."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from mixtrain.backend.tensorflow.by_float32 import by_float32, has_kernels
from mixtrain.backend.tensorflow.device import describe_device
from mixtrain.typing import Tensor


def pool(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    # On CPU float16 kernels run in one thread, and their gradient takes seven times as long as that of float32. So the
    # float32 kernels are used. The backward pass does the same from the half tensor: no float32 copy is kept for it.
    x = tf.convert_to_tensor(x)
    return function(x) if has_kernels(x.dtype.name, describe_device()) else by_float32(function, x)
