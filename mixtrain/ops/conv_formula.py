"""Convolution and transposed convolution of channels-last tensors, for the operations and the layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import keras

from mixtrain import backend
from mixtrain.ops.windows import Pads, Window, dilated, is_same, pad
from mixtrain.typing import Tensor

LAST: Final = "channels_last"
# Bound before autocast can replace them: callers choose the dtypes.
_conv, _depthwise, _conv_transpose = keras.ops.conv, keras.ops.depthwise_conv, keras.ops.conv_transpose


def convolve(
    last: Tensor, weight: Tensor, *, stride: Window, pad_mode: str, pads: Pads, dilation: Window, groups: int
) -> Tensor:
    """Convolve a tensor (N, *sizes, C) with a weight (channels of the output, C / groups, *kernel size) of its dtype.

    `pad_mode`: "valid", "same" or "pad", with the zeros `pads` before and after each axis. Returns (N, *sizes, channels
    of the output).
    """
    window = tuple(weight.shape[2:])
    padding = "same" if pad_mode == "same" else "valid"
    if pad_mode == "pad":
        if is_same(pads, window, stride, dilation):
            padding = "same"
        else:
            last = pad(last, pads)
    depthwise = groups > 1 and weight.shape[1] == 1 and len(window) == 2
    if depthwise and stride[0] == stride[1]:
        # (in * multiplier, 1, height, width) -> (height, width, in, multiplier)
        grouped = keras.ops.transpose(keras.ops.reshape(weight, (groups, -1, *window)), (2, 3, 0, 1))
        grouped = dilated(grouped, dilation)
        return backend.product(lambda x, kernel: _depthwise(x, kernel, stride[0], padding, LAST), last, grouped)
    # The backend has groups for images only; on a CPU their gradient takes up to 50 times as long as the groups' own.
    apart = groups > 1 and (len(window) == 3 or backend.describe_device().kind == "CPU")
    can_dilate = len(window) == 2 and (groups == 1 or apart) and all(step == 1 for step in stride)

    def conv(x: Tensor, weight: Tensor) -> Tensor:
        kernel, rates = keras.ops.transpose(weight, (*range(2, len(window) + 2), 1, 0)), dilation
        if any(rate > 1 for rate in rates) and not can_dilate:
            # The backend has no dilation together with strides, and none for groups and volumes: dilate the kernel.
            kernel, rates = dilated(kernel, rates), (1,) * len(rates)
        return backend.product(lambda x, kernel: _conv(x, kernel, stride, padding, LAST, rates), x, kernel)

    return by_groups(conv, last, weight, groups if apart else 1)


def transposed_convolve(
    last: Tensor, weight: Tensor, *, stride: Window, padding: str, dilation: Window, groups: int
) -> Tensor:
    """The transposed convolution of (N, *sizes, C) with a weight (C, channels of the output / groups, *kernel size).

    `padding`: "valid" (the full output) or "same" (size * stride elements along each axis).
    """

    def conv_transpose(x: Tensor, weight: Tensor) -> Tensor:
        # The backend has no dilation together with strides: dilate the kernel.
        kernel = dilated(keras.ops.transpose(weight, (*range(2, len(stride) + 2), 1, 0)), dilation)
        return backend.product(
            lambda x, kernel: _conv_transpose(x, kernel, stride, padding, data_format=LAST), x, kernel
        )

    return by_groups(conv_transpose, last, weight, groups)


def by_groups(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, weight: Tensor, groups: int) -> Tensor:
    """Apply ``function(x, weight)`` to each group of channels of `x` (last axis) and of `weight` (first axis)."""
    if groups == 1:
        return function(x, weight)
    parts = zip(keras.ops.split(x, groups, axis=-1), keras.ops.split(weight, groups, axis=0), strict=True)
    return keras.ops.concatenate([function(*part) for part in parts], axis=-1)
