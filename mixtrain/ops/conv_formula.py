"""The convolution itself, of channels-last tensors: what the operations and the layers both compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.ops.windows import Sides, Window, is_same, pad, spread

LAST: Final = "channels_last"
# As they are outside any autocast: the formats are settled here.
_conv, _depthwise, _conv_transpose = keras.ops.conv, keras.ops.depthwise_conv, keras.ops.conv_transpose


def convolve(
    last: Any, weight: Any, *, stride: Window, pad_mode: str, around: Sides, dilation: Window, groups: int
) -> Any:
    """Slide a weight over the axes between the first and the last.

    Args:
        last: Tensor (N, *sizes, C).
        weight: (channels of the output, C / groups, *window), in the same format.
        stride: Step of the window along each axis.
        pad_mode: "valid", "same" or "pad".
        around: With "pad": zeros before and after each axis.
        dilation: Distance between the window's elements along each axis.
        groups: Number of groups that channels are split into.

    Returns:
        (N, *sizes, channels of the output).

    Example:
        >>> ones = keras.ops.ones((1, 4, 4, 1)), keras.ops.ones((2, 1, 3, 3))
        >>> tuple(convolve(
        ...     *ones, stride=(1, 1), pad_mode="valid", around=((0, 0), (0, 0)), dilation=(1, 1), groups=1).shape)
        (1, 2, 2, 2)
    """
    window = tuple(weight.shape[2:])
    padding = "same" if pad_mode == "same" else "valid"
    if pad_mode == "pad":
        if is_same(around, window, stride, dilation):
            padding = "same"
        else:
            last = pad(last, around)
    depthwise = groups > 1 and weight.shape[1] == 1 and len(window) == 2
    if depthwise and dilation == (1, 1) and stride[0] == stride[1]:
        # (in * multiplier, 1, height, width) -> (height, width, in, multiplier)
        grouped = keras.ops.transpose(keras.ops.reshape(weight, (groups, -1, *window)), (2, 3, 0, 1))
        return backend.product(lambda x, kernel: _depthwise(x, kernel, stride[0], padding, LAST), last, grouped)
    separable = len(window) == 2 and groups == 1

    def with_kernel(part: Any, share: Any) -> Any:
        kernel, gaps = keras.ops.transpose(share, (*range(2, len(window) + 2), 1, 0)), dilation
        if any(gap > 1 for gap in gaps) and (any(step > 1 for step in stride) or not separable):
            # The backend has no step and dilation at once, and no dilation for groups and volumes.
            kernel, gaps = spread(kernel, gaps), (1,) * len(gaps)
        return backend.product(lambda x, kernel: _conv(x, kernel, stride, padding, LAST, gaps), part, kernel)

    # The backend has groups for images only.
    return by_groups(with_kernel, last, weight, groups if len(window) == 3 else 1)


def convolve_back(last: Any, weight: Any, *, stride: Window, padding: str, dilation: Window, groups: int) -> Any:
    """Spread each element over a window: a convolution run backwards.

    Args:
        last: Tensor (N, *sizes, C).
        weight: (C, channels of the output / groups, *window), in the same format.
        stride: Distance between the windows of neighbors along each axis.
        padding: "valid" (all that the windows cover) or "same" (size * stride elements along each axis).
        dilation: Distance between the window's elements along each axis.
        groups: Number of groups that channels are split into.

    Returns:
        (N, *sizes, channels of the output).

    Example:
        >>> ones = keras.ops.ones((1, 2, 2, 1)), keras.ops.ones((1, 3, 3, 3))
        >>> tuple(convolve_back(*ones, stride=(2, 2), padding="valid", dilation=(1, 1), groups=1).shape)
        (1, 5, 5, 3)
    """

    def with_kernel(part: Any, share: Any) -> Any:
        window_first = (*range(2, len(stride) + 2), 1, 0)
        # The backend has no step and dilation at once.
        kernel = spread(keras.ops.transpose(share, window_first), dilation)
        return backend.product(
            lambda x, kernel: _conv_transpose(x, kernel, stride, padding, data_format=LAST), part, kernel
        )

    return by_groups(with_kernel, last, weight, groups)


def by_groups(function: Callable[[Any, Any], Any], x: Any, weight: Any, groups: int) -> Any:
    """Apply ``function(x, weight)`` to each group of channels of `x` (last) and of `weight` (first), and join them."""
    if groups == 1:
        return function(x, weight)
    parts = zip(keras.ops.split(x, groups, axis=-1), keras.ops.split(weight, groups, axis=0), strict=True)
    return keras.ops.concatenate([function(part, kernel) for part, kernel in parts], axis=-1)
