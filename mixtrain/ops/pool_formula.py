"""Max and average pooling of channels-last tensors, shared by the operations and the layers."""

from __future__ import annotations

import math
from typing import Final

import keras

from mixtrain import backend
from mixtrain.ops.inputs import widened
from mixtrain.ops.windows import Pads, Pair, Window, pad, same_pads
from mixtrain.typing import Tensor

_LAST: Final = "channels_last"


def max_pool(x: Tensor, kernel_size: Window, stride: Window, mode: str = "valid") -> Tensor:
    """Max-pool; `mode` is "valid" or "same"."""
    if len(x.shape) == 5 and keras.backend.standardize_dtype(x.dtype) == "float64":
        # TensorFlow has no kernel for volumes in float64: pool each plane, then along the depth.
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


def max_pool_by_windows(
    x: Tensor, kernel_size: Pair, stride: Pair, dilation: Pair, padding: Pads, ceil_padding: Pads, *,
    return_indices: bool,
) -> Tensor:
    """Max-pool images (N, H, W, C) of known sizes by stacking the elements of each window.

    `dilation` is the distance between the window's elements; padding is never the maximum. With `return_indices` return
    ``(maxima, indices)``: the flat index in H * W of each maximum, int64.
    """
    ops, width = keras.ops, x.shape[2]
    padded = pad(pad(x, padding, -math.inf), ceil_padding, -math.inf)
    rows, columns = (
        ops.arange(0, length - (size - 1) * gap, step)
        for length, size, gap, step in zip(padded.shape[1:3], kernel_size, dilation, stride, strict=True)
    )
    values, indices = [], []
    for down in range(0, kernel_size[0] * dilation[0], dilation[0]):
        for across in range(0, kernel_size[1] * dilation[1], dilation[1]):
            values.append(ops.take(ops.take(padded, rows + down, axis=1), columns + across, axis=2))
            # Indices count from the image's corner, not from that of its padding.
            row, column = rows + down - padding[0][0], columns + across - padding[1][0]
            indices.append(row[:, None] * width + column[None, :])
    stacked = ops.stack(values, axis=-1)
    argmax = ops.argmax(stacked, axis=-1)[..., None]
    maxima = ops.take_along_axis(stacked, argmax, axis=-1)[..., 0]
    if not return_indices:
        return maxima
    flat = ops.broadcast_to(ops.stack(indices, axis=-1)[None, :, :, None, :], ops.shape(stacked))
    return maxima, backend.to_tensor(ops.take_along_axis(flat, argmax, axis=-1)[..., 0], "int64")
