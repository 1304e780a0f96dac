"""`Conv2d`: convolution over height and width."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

import keras

from mixtrain import checks, engine
from mixtrain.common.initializer import HeUniform, Uniform, fans, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import float32
from mixtrain.nn.cell import Cell
from mixtrain.nn.layer.inputs import check_fits, check_rank, check_width, float_tensor, promote
from mixtrain.nn.layer.windows import Pair, is_same, pad, pair, sides
from mixtrain.precision.families import Family

_LAST: Final = "channels_last"


class Conv2d(Cell):
    """Slide a learned window over height and width.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Window: an int or (height, width).
        stride: Step of the window: an int or (height, width).
        pad_mode: "same" (the output has ceil(size / stride) rows and columns), "valid" (no padding) or "pad".
        padding: With "pad": zeros on all sides, or (top, bottom, left, right).
        dilation: Distance between the window's elements: an int or (height, width).
        group: Number of groups that channels are split into; each sees its own part of the input.
        has_bias: Whether a bias is added; without one by default.
        weight_init: What `initializer` accepts; by default uniform within 1 / sqrt(fan in).
        bias_init: Likewise.
        data_format: "NCHW", the only one.
        dtype: Format the parameters are stored in.

    Inputs:
        x (N, in_channels, H, W), floating point.

    Returns:
        (N, out_channels, H', W'), in the wider of the formats of `x` and the weight.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, or `x` has another number of axes or channels.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> conv = nn.Conv2d(1, 6, 5, pad_mode="valid")
        >>> tuple(conv(mixtrain.Tensor(np.ones((2, 1, 32, 32), np.float32))).shape)
        (2, 6, 28, 28)

    Source: MindSpore, `mindspore.nn.Conv2d`.
    """

    precision_family: ClassVar[Family] = "matmul"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCHW",
        dtype: Any = float32,
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.in_channels = checks.integer(where, "in_channels", in_channels, at_least=1)
        self.out_channels = checks.integer(where, "out_channels", out_channels, at_least=1)
        self.kernel_size = pair(where, "kernel_size", kernel_size)
        self.stride = pair(where, "stride", stride)
        self.dilation = pair(where, "dilation", dilation)
        self.pad_mode = checks.one_of(where, "pad_mode", pad_mode, ("same", "valid", "pad"))
        self.padding = padding
        self._sides = sides(where, pad_mode, padding)
        self.group = checks.integer(where, "group", group, at_least=1)
        for name, channels in (("in_channels", self.in_channels), ("out_channels", self.out_channels)):
            if channels % self.group:
                raise checks.fail_value(where, f"{name} must be a multiple of group={group}", channels, "group=1")
        self.has_bias = checks.boolean(where, "has_bias", has_bias)
        self.weight_init, self.bias_init = weight_init, bias_init
        self.data_format = checks.one_of(where, "data_format", data_format, ("NCHW",))
        self._make_parameters(dtype)

    def _make_parameters(self, dtype: Any) -> None:
        shape = (self.out_channels, self.in_channels // self.group, *self.kernel_size)
        draw = HeUniform(math.sqrt(5)) if self.weight_init is None else self.weight_init
        self.weight = Parameter(initializer(draw, shape, dtype), name="weight")
        self.bias = None
        if self.has_bias:
            draw = Uniform(1 / math.sqrt(fans(shape)[0])) if self.bias_init is None else self.bias_init
            self.bias = Parameter(initializer(draw, (self.out_channels,), dtype), name="bias")

    def construct(self, x: Any) -> Any:
        """Convolve `x` and add the bias."""
        x = float_tensor(self, x)
        check_rank(self, x, (4,), "(N, C, H, W)")
        check_width(self, x, 1, self.in_channels, noun="channels", argument="in_channels")
        if self.pad_mode != "same":
            span = [(size - 1) * gap + 1 for size, gap in zip(self.kernel_size, self.dilation, strict=True)]
            check_fits(self, x, (span[0], span[1]), self._sides)
        parameters = [self.weight.value] if self.bias is None else [self.weight.value, self.bias.value]
        x, weight, *bias = promote(x, *parameters)
        y = self._convolve(engine.to_channels_last(x), weight)
        return engine.from_channels_last(keras.ops.add(y, bias[0]) if bias else y)

    def _convolve(self, x: Any, weight: Any) -> Any:
        """Convolve a channels-last tensor with the weight (out, in, height, width)."""
        padding = "same" if self.pad_mode == "same" else "valid"
        if self.pad_mode == "pad":
            if is_same(self._sides, self.kernel_size, self.stride, self.dilation):
                padding = "same"
            else:
                x = pad(x, self._sides)
        if self._is_depthwise():
            # (in * multiplier, 1, height, width) -> (height, width, in, multiplier)
            grouped = keras.ops.reshape(weight, (self.in_channels, -1, *self.kernel_size))
            kernel = keras.ops.transpose(grouped, (2, 3, 0, 1))
            return keras.ops.depthwise_conv(x, kernel, self.stride[0], padding, _LAST)
        kernel, dilation = keras.ops.transpose(weight, (2, 3, 1, 0)), self.dilation
        if dilation != (1, 1) and (self.stride != (1, 1) or self.group > 1):
            # The backend has no step and dilation at once.
            kernel, dilation = _spread(kernel, dilation), (1, 1)
        return keras.ops.conv(x, kernel, self.stride, padding, _LAST, dilation)

    def _is_depthwise(self) -> bool:
        each_its_own = self.group == self.in_channels > 1
        return each_its_own and self.dilation == (1, 1) and self.stride[0] == self.stride[1]

    def extend_repr(self) -> str:
        """Return the constructor's arguments."""
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}, "
            f"padding={self.padding}, dilation={self.dilation}, group={self.group}, has_bias={self.has_bias}, "
            f"weight_init={self.weight_init}, bias_init={self.bias_init}, format={self.data_format}"
        )


def _spread(kernel: Any, dilation: Pair) -> Any:
    """Return a dilated kernel (height, width, in, out) as a larger one with zeros between its elements."""
    high, wide, *channels = kernel.shape
    down, across = dilation
    spaced = keras.ops.reshape(kernel, (high, 1, wide, 1, *channels))
    spaced = keras.ops.pad(spaced, ((0, 0), (0, down - 1), (0, 0), (0, across - 1), (0, 0), (0, 0)))
    spaced = keras.ops.reshape(spaced, (high * down, wide * across, *channels))
    return spaced[: (high - 1) * down + 1, : (wide - 1) * across + 1]
