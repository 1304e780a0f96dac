"""What the convolutions share: arguments, parameters and their initial values, the checks and the bias."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.common.initializer import HeUniform, Uniform, fans, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.nn.layer.inputs import (
    channels_first,
    channels_last,
    check_rank,
    check_width,
    float_tensor,
    promote,
)
from mixtrain.nn.layer.windows import sides, window
from mixtrain.ops.windows import Sides, Window
from mixtrain.precision.families import Family

_AXES: Final = {1: "(N, C, L)", 2: "(N, C, H, W)", 3: "(N, C, D, H, W)"}


class Convolution(Cell):
    """A cell that slides a learned window over an input.

    A sequence is computed as an image of one row, and so are its window and weight kept, as in MindSpore.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Window.
        stride: Step of the window.
        pad_mode: "same", "valid" or "pad".
        padding: With "pad": zeros around the input.
        dilation: Distance between the window's elements.
        group: Number of groups that channels are split into.
        has_bias: Whether a bias is added.
        weight_init: Initial weight, anything that `initializer` accepts.
        bias_init: Initial bias, likewise.
        dtype: Dtype of the parameters.
        data_format: Names of the axes.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> import mixtrain.nn as nn
        >>> tuple(nn.Conv2d(1, 6, 5).weight.shape)
        (6, 1, 5, 5)
    """

    precision_family: ClassVar[Family] = "matmul"
    _rank: ClassVar[int] = 2
    _transposed: ClassVar[bool] = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        pad_mode: str,
        padding: Any,
        dilation: Any,
        group: int,
        has_bias: bool,
        weight_init: Any,
        bias_init: Any,
        dtype: Any,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.in_channels = checks.integer(where, "in_channels", in_channels, at_least=1)
        self.out_channels = checks.integer(where, "out_channels", out_channels, at_least=1)
        self.kernel_size = self._window("kernel_size", kernel_size)
        self.stride = self._window("stride", stride)
        self.dilation = self._window("dilation", dilation)
        self.pad_mode = checks.one_of(where, "pad_mode", pad_mode, ("same", "valid", "pad"))
        self.padding = (0, 0, padding, padding) if self._rank == 1 else padding
        self._sides = self._padding(padding)
        self.group = checks.integer(where, "group", group, at_least=1)
        for name, channels in (("in_channels", self.in_channels), ("out_channels", self.out_channels)):
            if channels % self.group:
                raise checks.fail_value(where, f"{name} must be a multiple of group={group}", channels, "group=1")
        self.has_bias = checks.boolean(where, "has_bias", has_bias)
        self.weight_init, self.bias_init = weight_init, bias_init
        self.data_format = checks.one_of(where, "data_format", data_format, ("NCDHW" if self._rank == 3 else "NCHW",))
        self._make_parameters(dtype)

    def _window(self, name: str, value: Any) -> Window:
        if self._rank == 1:
            return 1, checks.integer(self.cls_name, name, value, at_least=1, example=3)
        return window(self.cls_name, name, value, self._rank)

    def _padding(self, padding: Any) -> Sides:
        if self._rank > 1:
            return sides(self.cls_name, self.pad_mode, padding, self._rank)
        before_and_after = checks.integer(self.cls_name, "padding", padding, at_least=0)
        return (0, 0), sides(self.cls_name, self.pad_mode, before_and_after)[1]

    def _make_parameters(self, dtype: Any) -> None:
        out_and_in = (self.out_channels, self.in_channels // self.group)
        if self._transposed:
            out_and_in = (self.in_channels, self.out_channels // self.group)
        shape = (*out_and_in, *self.kernel_size)
        draw = HeUniform(math.sqrt(5)) if self.weight_init is None else self.weight_init
        if self._rank == 1 and len(getattr(draw, "shape", ())) == 3:
            draw = keras.ops.expand_dims(backend.to_tensor(draw), 2)
        self.weight = Parameter(initializer(draw, shape, dtype), name="weight")
        self.bias = None
        if self.has_bias:
            draw = Uniform(1 / math.sqrt(fans(shape)[0])) if self.bias_init is None else self.bias_init
            self.bias = Parameter(initializer(draw, (self.out_channels,), dtype), name="bias")

    def construct(self, x: Any) -> Any:
        """Convolve `x` and add the bias."""
        x = float_tensor(self, x)
        check_rank(self, x, (self._rank + 2,), _AXES[self._rank])
        check_width(self, x, 1, self.in_channels, noun="channels", argument="in_channels")
        self._check_sizes(x)
        parameters = [self.weight.value] if self.bias is None else [self.weight.value, self.bias.value]
        x, weight, *bias = promote(x, *parameters)
        if self._rank == 1:
            x = keras.ops.expand_dims(x, 2)
        y = self._convolve(channels_last(x), weight)
        y = channels_first(self._finish(keras.ops.add(y, bias[0]) if bias else y))
        return keras.ops.squeeze(y, 2) if self._rank == 1 else y

    def _check_sizes(self, x: Any) -> None:
        """Raise a ValueError where the input (N, C, *sizes) is too small."""

    def _span(self) -> Window:
        """Return how far the window reaches along each axis."""
        return tuple((size - 1) * gap + 1 for size, gap in zip(self.kernel_size, self.dilation, strict=True))

    def _convolve(self, x: Any, weight: Any) -> Any:
        """Convolve a channels-last tensor with the weight."""
        raise NotImplementedError(f"{self.cls_name}: a subclass must define _convolve(self, x, weight).")

    def _finish(self, y: Any) -> Any:
        """Return what becomes of the channels-last output once the bias is added."""
        return y

    def extend_repr(self) -> str:
        """Return the constructor's arguments."""
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}, "
            f"padding={self.padding}, dilation={self.dilation}, group={self.group}, has_bias={self.has_bias}, "
            f"weight_init={self.weight_init}, bias_init={self.bias_init}, format={self.data_format}"
        )
