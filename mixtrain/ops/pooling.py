"""Max and average pooling of images, with their primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import checks
from mixtrain.ops import nhwc
from mixtrain.ops.adaptive import pool_to
from mixtrain.ops.pool_formula import avg_pool, max_pool, padded_avg_pool, padded_max_pool
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.windows import (
    NO_PADS,
    Pair,
    check_data_format,
    check_fits,
    image,
    mode_of,
    pads_of,
    same_pads,
    window,
)
from mixtrain.typing import Tensor, TensorLike


def max_pool2d(
    x: TensorLike, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, return_indices: bool = False,
    ceil_mode: bool = False,
) -> Tensor:
    """Max-pool images `x` (N, C, H, W), in their dtype.

    `kernel_size`: an int or (height, width); `stride`: None for `kernel_size`; `padding`, which is never the maximum:
    an int or (height, width), at most half of the window; `dilation`: 1 and `ceil_mode`: False, `nn.MaxPool2d` supports
    others; `return_indices`: whether to return (output, indices), each the flat index in H * W of a maximum, int64.
    Example: ``ops.max_pool2d(x, 2)``.
    """
    where, x = "ops.max_pool2d", image("ops.max_pool2d", x)
    if window(where, "dilation", dilation) != (1, 1) or ceil_mode:
        raise checks.fail_value(
            where, "dilation must be 1 and ceil_mode False", (dilation, ceil_mode), "nn.MaxPool2d(..., pad_mode='pad')"
        )
    kernel_size, stride, sides = _geometry(where, kernel_size, stride, padding)
    check_fits(where, x, kernel_size, sides)
    return_indices = checks.boolean(where, "return_indices", return_indices)
    return _channels_last(
        lambda x: padded_max_pool(x, kernel_size, stride, (1, 1), sides, NO_PADS, return_indices=return_indices), x
    )


def avg_pool2d(
    input_x: TensorLike, kernel_size: int | Sequence[int] = 1, stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int = 0,
) -> Tensor:
    """Average-pool images `input_x` (N, C, H, W), in their dtype.

    `kernel_size`, `stride`: an int or (height, width); `padding`: zeros, at most half of the window; `ceil_mode`:
    False, `nn.AvgPool2d` supports True; `count_include_pad`: whether the mean counts the padding; `divisor_override`:
    what sums are divided by, 0 for the window's size. Example: ``ops.avg_pool2d(x, 2, 2)``.
    """
    where, x = "ops.avg_pool2d", image("ops.avg_pool2d", input_x)
    if ceil_mode:
        raise checks.fail_value(where, "ceil_mode must be False", ceil_mode, "nn.AvgPool2d(..., ceil_mode=True)")
    kernel_size, stride, sides = _geometry(where, kernel_size, stride, padding)
    check_fits(where, x, kernel_size, sides)
    divisor = checks.integer(where, "divisor_override", divisor_override, at_least=0) or None
    include_pad = checks.boolean(where, "count_include_pad", count_include_pad)
    return _channels_last(
        lambda x: padded_avg_pool(x, kernel_size, stride, sides, NO_PADS, include_pad=include_pad, divisor=divisor), x
    )


def adaptive_avg_pool2d(input: TensorLike, output_size: int | Sequence[int]) -> Tensor:
    """Average-pool images `input` (N, C, H, W) or (C, H, W) to `output_size`, in their dtype.

    It is an int or (height, width), where None keeps the input's. Example: ``ops.adaptive_avg_pool2d(x, 1)``.
    """
    if len(input.shape) == 3:
        return adaptive_avg_pool2d(keras.ops.expand_dims(input, 0), output_size)[0]
    where, x = "ops.adaptive_avg_pool2d", image("ops.adaptive_avg_pool2d", input)
    sizes = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size, output_size)
    if len(sizes) != 2:
        raise checks.fail_value(where, "output_size must be a number or two", sizes, "output_size=(1, 1)")
    sizes = tuple(
        old if new is None else checks.integer(where, "output_size", new, at_least=1)
        for new, old in zip(sizes, x.shape[2:], strict=True)
    )
    return _channels_last(lambda x: pool_to(x, sizes, keras.ops.mean), x)


def _geometry(
    where: str, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None, padding: int | Sequence[int]
) -> tuple[Pair, Pair, Any]:
    kernel_size = window(where, "kernel_size", kernel_size)
    sides = pads_of(where, "padding", padding)
    if any(max(pair) > size // 2 for pair, size in zip(sides, kernel_size, strict=True)):
        raise checks.fail_value(
            where, f"padding must be at most half of kernel_size {kernel_size}", padding, "padding=0"
        )
    return kernel_size, kernel_size if stride is None else window(where, "stride", stride), sides


def _channels_last(pool: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Apply a pooling of channels-last images to (N, C, H, W)."""
    return keras.tree.map_structure(nhwc.from_channels_last, pool(nhwc.to_channels_last(x)))


class _Pool(Primitive):
    """A pooling with fixed settings."""

    def __init__(
        self, kernel_size: int | Sequence[int] = 1, strides: int | Sequence[int] = 1, pad_mode: str = "valid",
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        self.kernel_size = window(self.name, "kernel_size", kernel_size)
        self.strides = window(self.name, "strides", strides)
        self.pad_mode = mode_of(self.name, pad_mode, ("valid", "same")).upper()
        self.data_format = check_data_format(self.name, data_format)

    def _checked(self, x: Tensor) -> Tensor:
        x = image(self.name, x)
        if self.pad_mode == "VALID":
            check_fits(self.name, x, self.kernel_size, NO_PADS)
        return x


class MaxPool(_Pool):
    """Max pooling of (N, C, H, W) with `kernel_size`, `strides`, and `pad_mode` "valid" or "same", in any case.

    `data_format` is "NCHW". Example: ``ops.MaxPool(2, 2)(x)``.
    """

    def __call__(self, x: TensorLike) -> Tensor:
        """Pool `x`."""
        mode = self.pad_mode.lower()
        return _channels_last(lambda x: max_pool(x, self.kernel_size, self.strides, mode), self._checked(x))


class AvgPool(_Pool):
    """Average pooling of (N, C, H, W) with `kernel_size`, `strides`, `pad_mode` "valid" or "same" (not counted).

    `data_format` is "NCHW". Example: ``ops.AvgPool(2, 2)(x)``.
    """

    def __call__(self, x: TensorLike) -> Tensor:
        """Pool `x`."""
        mode = self.pad_mode.lower()
        return _channels_last(lambda x: avg_pool(x, self.kernel_size, self.strides, mode), self._checked(x))


class MaxPoolWithArgmax(_Pool):
    """`MaxPool` that returns ``(output, indices)``: the flat index in C * H * W of each maximum, int32.

    `kernel_size`, `strides`, `pad_mode`, `data_format` as there. Example: ``ops.MaxPoolWithArgmax(2, 2)(x)``.
    """

    def __call__(self, x: TensorLike) -> tuple[Tensor, Tensor]:
        """Pool `x`."""
        x = self._checked(x)
        sides = NO_PADS if self.pad_mode == "VALID" else same_pads(x.shape[2:], self.kernel_size, self.strides)
        maxima, indices = _channels_last(lambda x: padded_max_pool(
            x, self.kernel_size, self.strides, (1, 1), sides, NO_PADS, return_indices=True
        ), x)
        channels, height, width = x.shape[1:]
        starts = keras.ops.reshape(keras.ops.arange(channels, dtype="int32") * (height * width), (1, -1, 1, 1))
        return maxima, keras.ops.cast(indices, "int32") + starts
