"""`Convolution`: the base class of convolutions, with arguments, parameters, checks and the bias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Final

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.common.initializer import HeUniform, InitializerLike, Uniform, fans, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import float32
from mixtrain.nn.layer.inputs import check_rank, check_width, float_tensor, promote
from mixtrain.nn.layer.windows import conv_padding, window
from mixtrain.ops import nhwc
from mixtrain.ops.windows import Pads, Window
from mixtrain.typing import DTypeLike, Tensor

_AXES: Final = {1: "(N, C, L)", 2: "(N, C, H, W)", 3: "(N, C, D, H, W)"}


class Convolution(Cell):
    """Base class of convolutions and transposed convolutions; see `Conv2d` for the arguments.

    A sequence is processed as an image of height 1. Its kernel size and weight are stored that way too, as in
    MindSpore.

    Example:
        >>> import mixtrain.nn as nn
        >>> tuple(nn.Conv2d(1, 6, 5).weight.shape)
        (6, 1, 5, 5)
    """

    precision_family = "matmul"
    _rank: ClassVar[int] = 2
    _transposed: ClassVar[bool] = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int],
        pad_mode: str, padding: int | Sequence[int], dilation: int | Sequence[int], group: int, has_bias: bool,
        weight_init: InitializerLike | None, bias_init: InitializerLike | None, dtype: DTypeLike,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.in_channels = checks.integer(where, "in_channels", in_channels, at_least=1)
        self.out_channels = checks.integer(where, "out_channels", out_channels, at_least=1)
        self.kernel_size = self._sizes("kernel_size", kernel_size)
        self.stride = self._sizes("stride", stride)
        self.dilation = self._sizes("dilation", dilation)
        self.pad_mode = checks.one_of(where, "pad_mode", pad_mode, ("same", "valid", "pad"))
        self.padding = (0, 0, padding, padding) if self._rank == 1 else padding
        self._pads = self._padding_pairs(padding)
        self.group = checks.integer(where, "group", group, at_least=1)
        for name, channels in (("in_channels", self.in_channels), ("out_channels", self.out_channels)):
            if channels % self.group:
                raise checks.fail_value(where, f"{name} must be a multiple of group={group}", channels, "group=1")
        self.has_bias = checks.boolean(where, "has_bias", has_bias)
        self.weight_init, self.bias_init = weight_init, bias_init
        self.data_format = checks.one_of(where, "data_format", data_format, ("NCDHW" if self._rank == 3 else "NCHW",))
        self._create_parameters(dtype)

    def _sizes(self, name: str, value: int | Sequence[int]) -> Window:
        if self._rank == 1:
            return 1, checks.integer(self.cls_name, name, value, at_least=1, example=3)
        return window(self.cls_name, name, value, self._rank)

    def _padding_pairs(self, padding: int | Sequence[int]) -> Pads:
        if self._rank > 1:
            return conv_padding(self.cls_name, self.pad_mode, padding, self._rank)
        padding = checks.integer(self.cls_name, "padding", padding, at_least=0)
        return (0, 0), conv_padding(self.cls_name, self.pad_mode, padding)[1]

    def _create_parameters(self, dtype: DTypeLike) -> None:
        channels = (self.out_channels, self.in_channels // self.group)
        if self._transposed:
            channels = (self.in_channels, self.out_channels // self.group)
        shape = (*channels, *self.kernel_size)
        # HeUniform(sqrt(5)) is uniform within 1 / sqrt(fan in), MindSpore's and PyTorch's default.
        init = HeUniform(math.sqrt(5)) if self.weight_init is None else self.weight_init
        if self._rank == 1 and len(getattr(init, "shape", ())) == 3:
            init = keras.ops.expand_dims(backend.to_tensor(init), 2)
        self.weight = Parameter(initializer(init, shape, dtype), name="weight")
        self.bias = None
        if self.has_bias:
            init = Uniform(1 / math.sqrt(fans(shape)[0])) if self.bias_init is None else self.bias_init
            self.bias = Parameter(initializer(init, (self.out_channels,), dtype), name="bias")

    def construct(self, x: Tensor) -> Tensor:
        """Convolve `x` and add the bias."""
        x = float_tensor(self, x)
        check_rank(self, x, (self._rank + 2,), _AXES[self._rank])
        check_width(self, x, 1, self.in_channels, noun="channels", argument="in_channels")
        self._check_sizes(x)
        parameters = [self.weight.value] if self.bias is None else [self.weight.value, self.bias.value]
        x, weight, *bias = promote(x, *parameters)
        if self._rank == 1:
            x = keras.ops.expand_dims(x, 2)
        y = self._convolve(nhwc.to_channels_last(x), weight)
        y = nhwc.from_channels_last(self._finish(keras.ops.add(y, bias[0]) if bias else y))
        return keras.ops.squeeze(y, 2) if self._rank == 1 else y

    def _check_sizes(self, x: Tensor) -> None:
        """Raise a ValueError if the input (N, C, *sizes) is too small."""

    def _effective_kernel_size(self) -> Window:
        """Return the size of the dilated kernel along each axis."""
        sizes = zip(self.kernel_size, self.dilation, strict=True)
        return tuple((size - 1) * dilation + 1 for size, dilation in sizes)

    def _convolve(self, x: Tensor, weight: Tensor) -> Tensor:
        """Convolve a channels-last tensor with the weight."""
        raise NotImplementedError(f"{self.cls_name}: a subclass must define _convolve(self, x, weight).")

    def _finish(self, y: Tensor) -> Tensor:
        """Post-process the channels-last output after the bias is added."""
        return y

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}, "
            f"padding={self.padding}, dilation={self.dilation}, group={self.group}, has_bias={self.has_bias}, "
            f"weight_init={self.weight_init}, bias_init={self.bias_init}, format={self.data_format}"
        )


class SequenceConvolution(Convolution):
    """The arguments of convolutions of sequences; see `Conv1d`. Example: ``nn.Conv1d(2, 4, 3)``."""

    _rank = 1

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, pad_mode: str = "same",
        padding: int = 0, dilation: int = 1, group: int = 1, has_bias: bool = False,
        weight_init: InitializerLike | None = None, bias_init: InitializerLike | None = None,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, dtype,
        )
