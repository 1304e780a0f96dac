"""Max and average pooling of channels-last tensors, shared by the operations and the layers."""

from __future__ import annotations

import math
from typing import Final

import keras

from mixtrain import backend
from mixtrain.ops.inputs import widened
from mixtrain.ops.windows import Pads, Pair, Window, pad, same_pads, window_elements
from mixtrain.typing import Tensor

_LAST: Final = "channels_last"


def max_pool(x: Tensor, kernel_size: Window, stride: Window, mode: str = "valid") -> Tensor:
    """Max-pool; `mode` is "valid" or "same"."""
    if len(x.shape) == 5 and keras.backend.standardize_dtype(x.dtype) in backend.UNPOOLED_VOLUMES:
        # Pool each plane, then along the depth.
        depth, *plane, channels = x.shape[1:]
        planes = max_pool(keras.ops.reshape(x, (-1, *plane, channels)), kernel_size[1:], stride[1:], mode)
        height, width = planes.shape[1:3]
        lines = keras.ops.reshape(planes, (-1, depth, height * width, channels))
        pooled = max_pool(lines, (kernel_size[0], 1), (stride[0], 1), mode)
        return keras.ops.reshape(pooled, (-1, pooled.shape[1], height, width, channels))
    return backend.pool(lambda x: keras.ops.max_pool(x, kernel_size, stride, mode, _LAST), x)


def avg_pool(x: Tensor, kernel_size: Window, stride: Window, mode: str = "valid") -> Tensor:
    """Average-pool, with sums in float32 at least; with `mode` "same", padding is not counted."""

    def average(x: Tensor) -> Tensor:
        return keras.ops.cast(keras.ops.average_pool(widened(x), kernel_size, stride, mode, _LAST), x.dtype)

    return backend.pool(average, x)


def padded_avg_pool(
    x: Tensor, kernel_size: Window, stride: Window, padding: Pads, ceil_padding: Pads, *, include_pad: bool,
    divisor: int | None,
) -> Tensor:
    """Average-pool (N, *sizes, C), padded by `padding` on each side, and by `ceil_padding` for a last, partial window.

    No mean counts `ceil_padding`; with `include_pad` means count `padding`. `divisor`: what sums are divided by in
    place of the number of elements counted; None for that number.
    """
    padded = avg_pool(pad(pad(x, padding), ceil_padding), kernel_size, stride)
    if divisor is not None:
        return _with_divisor(padded, kernel_size, divisor)
    if not any(map(any, ceil_padding)) and (include_pad or not any(map(any, padding))):
        return padded
    # Divide by the fraction of each window that counts.
    counted = pad(keras.ops.ones_like(x[:1, ..., :1]), padding, 1.0 if include_pad else 0.0)
    return padded / avg_pool(pad(counted, ceil_padding), kernel_size, stride)


def same_avg_pool(x: Tensor, kernel_size: Pair, stride: Pair, divisor: int | None = None) -> Tensor:
    """Average-pool images to ceil(size / stride); with `divisor`, return sums divided by it."""
    if divisor is None:
        return avg_pool(x, kernel_size, stride, "same")
    padding = same_pads(x.shape[1:3], kernel_size, stride)
    return _with_divisor(avg_pool(pad(x, padding), kernel_size, stride), kernel_size, divisor)


def _with_divisor(averages: Tensor, kernel_size: Window, divisor: int) -> Tensor:
    """Return means over whole windows as sums divided by `divisor`."""
    return averages * (math.prod(kernel_size) / divisor)


def padded_max_pool(
    x: Tensor, kernel_size: Window, stride: Window, dilation: Window, padding: Pads, ceil_padding: Pads, *,
    return_indices: bool,
) -> Tensor:
    """Max-pool (N, *sizes, C), padded by `padding` on each side, and by `ceil_padding` for a last, partial window.

    `dilation` is the distance between the window's elements; padding is never the maximum. With `return_indices` return
    ``(maxima, indices)``: the flat index in `sizes` of each maximum, int64. Windows with gaps, and indices, need known
    sizes.
    """

    def windows(x: Tensor, fill: float) -> Tensor:
        elements = window_elements(padded(x, fill), kernel_size, stride, dilation, axis=1)
        return ops.stack(elements, axis=-1)

    def padded(x: Tensor, fill: float) -> Tensor:
        return pad(pad(x, padding, fill), ceil_padding, fill)

    ops = keras.ops
    if max(dilation) == 1 and not return_indices:
        return max_pool(padded(x, -math.inf), kernel_size, stride)
    values = windows(x, -math.inf)
    argmax = ops.argmax(values, axis=-1)[..., None]
    maxima = ops.take_along_axis(values, argmax, axis=-1)[..., 0]
    if not return_indices:
        return maxima
    sizes = x.shape[1:-1]
    indices = windows(ops.reshape(ops.arange(math.prod(sizes)), (1, *sizes, 1)), -1)
    indices = ops.broadcast_to(indices, ops.shape(values))
    return maxima, backend.to_tensor(ops.take_along_axis(indices, argmax, axis=-1)[..., 0], "int64")
