"""2D convolution and bias addition, with their primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import keras

from mixtrain import backend, checks
from mixtrain.ops import nhwc
from mixtrain.ops.conv_formula import convolve
from mixtrain.ops.inputs import rank_of, tensor, tensor_dtype
from mixtrain.ops.primitive import Primitive, as_primitive
from mixtrain.ops.promotion import promoted
from mixtrain.ops.windows import check_data_format, check_fits, image, mode_of, pads_of, window
from mixtrain.typing import Tensor, TensorLike

_MODES: Final = ("valid", "same", "pad")


def conv2d(
    input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: int | Sequence[int] = 1,
    pad_mode: str = "valid", padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1,
) -> Tensor:
    """Convolve images `input` (N, C, H, W) with `weight` (channels of the output, C / groups, height, width).

    Args:
        input: Images, floating point.
        weight: The kernels; the result is in the wider of the two dtypes.
        bias: (channels of the output,), or None.
        stride: Stride: an int or (height, width).
        pad_mode: "valid" (no padding), "same" (the output has ceil(size / stride) rows and columns) or "pad".
        padding: With "pad": zeros, an int, (height, width) or (top, bottom, left, right).
        dilation: Dilation rate: an int or (height, width).
        groups: Number of groups that channels are split into.

    Example: ``ops.conv2d(ops.ones((1, 1, 4, 4)), ops.ones((2, 1, 3, 3)))`` has shape (1, 2, 2, 2).
    """
    where = "ops.conv2d"
    x, kernel = image(where, input), tensor(where, weight)
    count = checks.integer(where, "groups", groups, at_least=1)
    _check_weight(where, x, kernel, count)
    mode, rates = mode_of(where, pad_mode, _MODES), window(where, "dilation", dilation)
    sides = pads_of(where, "padding", padding)
    if mode != "pad" and any(map(any, sides)):
        raise checks.fail_value(where, f'padding must be 0 with pad_mode="{mode}"', padding, 'pad_mode="pad"')
    if mode != "same":
        height, width = ((size - 1) * rate + 1 for size, rate in zip(kernel.shape[2:], rates, strict=True))
        check_fits(where, x, (height, width), sides)
    dtype, strides = promoted(tensor_dtype(x), tensor_dtype(kernel)), window(where, "stride", stride)
    last = nhwc.to_channels_last(backend.cast_keeping_layout(x, dtype))
    y = convolve(
        last, keras.ops.cast(kernel, dtype), stride=strides, pad_mode=mode, pads=sides, dilation=rates, groups=count
    )
    if bias is not None:
        y = keras.ops.add(y, keras.ops.cast(_bias(where, bias, y.shape[-1]), dtype))
    return nhwc.from_channels_last(y)


def _check_weight(where: str, x: Tensor, weight: Tensor, groups: int) -> None:
    if rank_of(weight) != 4:
        raise checks.fail_value(
            where, "weight must have axes (out, in, height, width)", tuple(weight.shape), "a weight of 4 axes"
        )
    channels, (outputs, inputs) = x.shape[1], weight.shape[:2]
    if outputs % groups or channels not in (None, inputs * groups):
        raise checks.fail_value(
            where, f"weight must be for {channels} channels in {groups} groups", tuple(weight.shape),
            f"a weight ({outputs}, {(channels or 0) // groups}, height, width)",
        )


def _bias(where: str, bias: TensorLike | None, channels: int) -> Tensor:
    values = tensor(where, bias)
    if rank_of(values) != 1 or channels not in (None, values.shape[0]):
        raise checks.fail_value(where, f"bias must have shape ({channels},)", tuple(values.shape), "one a channel")
    return values


def bias_add(input_x: TensorLike, bias: TensorLike) -> Tensor:
    """Add `bias` (C,) to the channels of `input_x` (N, C, ...), in the wider dtype: ``ops.bias_add(x, bias)``."""
    where, x = "ops.bias_add", tensor("ops.bias_add", input_x)
    if rank_of(x) < 2:
        raise checks.fail_value(where, "input_x must have at least 2 axes", tuple(x.shape), "input_x (N, C)")
    values = _bias(where, bias, x.shape[1])
    dtype = promoted(tensor_dtype(x), tensor_dtype(values))
    x, values = backend.cast_keeping_layout(x, dtype), keras.ops.cast(values, dtype)
    if rank_of(x) == 4:
        return nhwc.from_channels_last(keras.ops.add(nhwc.to_channels_last(x), values))
    return keras.ops.add(x, keras.ops.reshape(values, (-1, *(1,) * (rank_of(x) - 2))))


@as_primitive
def BiasAdd(input_x: TensorLike, bias: TensorLike, *, data_format: str = "NCHW") -> Tensor:
    """`bias_add` as an object; `data_format` is "NCHW". Example: ``ops.BiasAdd()(x, bias)``."""
    return bias_add(input_x, bias)


class Conv2D(Primitive):
    """`conv2d` with fixed settings; the weight is an argument of the call.

    Args:
        out_channel: Channels of the output.
        kernel_size: Size of the kernel: an int or (height, width).
        mode: Only 1: convolution.
        pad_mode: "valid", "same" or "pad", in upper or lower case.
        pad: With "pad": zeros, an int or (top, bottom, left, right).
        stride: Stride: an int or (height, width).
        dilation: Dilation rate: an int or (height, width).
        group: Number of groups that channels are split into.
        data_format: Only "NCHW".

    Example: ``ops.Conv2D(2, 3)(ops.ones((1, 1, 4, 4)), ops.ones((2, 1, 3, 3)))`` has shape (1, 2, 2, 2).
    """

    def __init__(
        self, out_channel: int, kernel_size: int | Sequence[int], mode: int = 1, pad_mode: str = "valid",
        pad: int | Sequence[int] = 0, stride: int | Sequence[int] = 1, dilation: int | Sequence[int] = 1,
        group: int = 1, data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        self.out_channel = checks.integer(self.name, "out_channel", out_channel, at_least=1)
        self.kernel_size = window(self.name, "kernel_size", kernel_size)
        self.mode = checks.one_of(self.name, "mode", mode, (1,))
        self.pad_mode = mode_of(self.name, pad_mode, _MODES)
        self.pad = pads_of(self.name, "pad", pad)
        self.stride = window(self.name, "stride", stride)
        self.dilation = window(self.name, "dilation", dilation)
        self.group = checks.integer(self.name, "group", group, at_least=1)
        self.data_format = check_data_format(self.name, data_format)

    def __call__(self, x: TensorLike, weight: TensorLike) -> Tensor:
        """Convolve `x` (N, C, H, W) with `weight` (out_channel, C / group, height, width)."""
        if (weight.shape[0], *weight.shape[2:]) != (self.out_channel, *self.kernel_size):
            raise checks.fail_value(
                self.name, f"weight must have {self.out_channel} outputs and a window {self.kernel_size}",
                tuple(weight.shape), "a weight (out_channel, in, *kernel_size)",
            )
        padding = (*self.pad[0], *self.pad[1])
        return conv2d(x, weight, None, self.stride, self.pad_mode, padding, self.dilation, self.group)
