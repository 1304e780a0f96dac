"""Transposed convolutions, as primitives whose weight is an argument of the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import keras

from mixtrain import checks
from mixtrain.ops import nhwc
from mixtrain.ops.conv_formula import transposed_convolve
from mixtrain.ops.inputs import as_floats, rank_of, values_of
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.volumes import pads_from, sizes_of
from mixtrain.ops.windows import Pads, Window, mode_of
from mixtrain.typing import Tensor, TensorLike


class _ConvTranspose(Primitive):
    """Base of the transposed convolutions: settings, and the full output cropped or padded to a size."""

    _rank: ClassVar[int]

    def _set(
        self, pad_mode: str, padding: int | Sequence[int], mode: int, stride: int | Sequence[int],
        dilation: int | Sequence[int], group: int, data_format: str,
    ) -> None:
        super().__init__()
        where = self.name
        self.pad_mode = mode_of(where, pad_mode, ("valid", "same", "pad"))
        self.padding = pads_from(where, padding, self._rank)
        checks.one_of(where, "mode", mode, (1,))
        self.stride = sizes_of(where, "stride", stride, self._rank)
        self.dilation = sizes_of(where, "dilation", dilation, self._rank)
        self.group = checks.integer(where, "group", group, at_least=1)
        checks.one_of(where, "data_format", data_format, ("NCHW" if self._rank == 2 else "NCDHW",))

    def _check_inputs(self, dout: TensorLike, weight: TensorLike) -> tuple[Tensor, Tensor]:
        """Return the inputs as tensors of one dtype; raise a ValueError where their shapes do not fit."""
        x, kernel = as_floats(self.name, dout), as_floats(self.name, weight)
        if rank_of(x) != self._rank + 2 or rank_of(kernel) != self._rank + 2 or x.shape[1] != kernel.shape[0]:
            raise ValueError(
                f"{self.name}: expected dout (N, C, *sizes) and weight (C, channels // group, *window), of "
                f"{self._rank + 2} axes; got shapes {tuple(x.shape)} and {tuple(kernel.shape)}. Write a weight whose "
                "first axis is dout's second."
            )
        return x, keras.ops.cast(kernel, x.dtype)

    def _full_sizes(self, x: Tensor, kernel: Tensor) -> list[int]:
        """Return the sizes of the output without padding."""
        axes = zip(x.shape[2:], kernel.shape[2:], self.stride, self.dilation, strict=True)
        return [(count - 1) * stride + (size - 1) * dilation + 1 for count, size, stride, dilation in axes]

    def _convolve(self, x: Tensor, kernel: Tensor, sizes: Sequence[int], padding: Pads) -> Tensor:
        """Return the full output without the padding at its start, cropped or padded with zeros to `sizes`."""
        y = transposed_convolve(
            nhwc.to_channels_last(x), kernel, stride=self.stride, padding="valid", dilation=self.dilation,
            groups=self.group,
        )
        for axis, (size, (start, _)) in enumerate(zip(sizes, padding, strict=True), start=1):
            y = y[(slice(None),) * axis + (slice(start, start + size),)]
        missing = [(0, size - actual) for size, actual in zip(sizes, y.shape[1:-1], strict=True)]
        return nhwc.from_channels_last(keras.ops.pad(y, [(0, 0), *missing, (0, 0)]) if any(map(any, missing)) else y)


def _same_padding(full: Sequence[int], sizes: Sequence[int]) -> Pads:
    """Return the padding that "same" cuts off a full output to give `sizes`."""
    totals = [max(length - size, 0) for length, size in zip(full, sizes, strict=True)]
    return tuple((total // 2, total - total // 2) for total in totals)


class Conv2DTranspose(_ConvTranspose):
    """The gradient of `Conv2D` by its input.

    A call takes the images (N, C, H, W), the weight (C, channels / group, *kernel size) and the shape of the result.
    `out_channel` is the number of channels of the images, an output of `Conv2D`; `pad_mode`, `pad` (or `pad_list`),
    `stride`, `dilation` and `group` are those of the convolution; `kernel_size` is that of the weight; `mode` is 1,
    `data_format` "NCHW".
    """

    _rank = 2

    def __init__(
        self, out_channel: int, kernel_size: int | Sequence[int], pad_mode: str = "valid", pad: int | Sequence[int] = 0,
        pad_list: Sequence[int] | None = None, mode: int = 1, stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1, group: int = 1, data_format: str = "NCHW",
    ) -> None:
        self._set(pad_mode, pad if pad_list is None else pad_list, mode, stride, dilation, group, data_format)
        self.out_channel, self.kernel_size = out_channel, kernel_size

    def __call__(self, dout: TensorLike, weight: TensorLike, input_size: TensorLike) -> Tensor:
        x, kernel = self._check_inputs(dout, weight)
        shape = input_size if isinstance(input_size, (tuple, list)) else values_of(self.name, input_size).tolist()
        sizes = tuple(int(size) for size in shape)[2:]
        padding: Pads = self.padding if self.pad_mode == "pad" else ((0, 0), (0, 0))
        if self.pad_mode == "same":
            padding = _same_padding(self._full_sizes(x, kernel), sizes)
        return self._convolve(x, kernel, sizes, padding)


class Conv3DTranspose(_ConvTranspose):
    """Transposed 3D convolution of volumes (N, C, D, H, W) with a weight (C, channels / group, *kernel size).

    `in_channel` and `out_channel` are channels of input and output; `kernel_size` is that of the weight. `pad_mode`:
    "valid" (the full output), "same" (size * `stride`) or "pad", where `pad`, an int or six, is cut off the sides.
    `output_padding` is added at the end of each axis, except with "same". `dilation`, `group` as in `Conv3D`; `mode` is
    1, `data_format` "NCDHW".
    """

    _rank = 3

    def __init__(
        self, in_channel: int, out_channel: int, kernel_size: int | Sequence[int], mode: int = 1,
        pad_mode: str = "valid", pad: int | Sequence[int] = 0, stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1, group: int = 1, output_padding: int | Sequence[int] = 0,
        data_format: str = "NCDHW",
    ) -> None:
        self._set(pad_mode, pad, mode, stride, dilation, group, data_format)
        self.in_channel, self.out_channel, self.kernel_size = in_channel, out_channel, kernel_size
        self.output_padding: Window = sizes_of(self.name, "output_padding", output_padding, 3, at_least=0)

    def __call__(self, dout: TensorLike, weight: TensorLike) -> Tensor:
        x, kernel = self._check_inputs(dout, weight)
        full = self._full_sizes(x, kernel)
        if self.pad_mode == "same":
            sizes = [count * stride for count, stride in zip(x.shape[2:], self.stride, strict=True)]
            return self._convolve(x, kernel, sizes, _same_padding(full, sizes))
        padding: Pads = self.padding if self.pad_mode == "pad" else ((0, 0),) * 3
        sizes = [
            size - sum(sides) + extra for size, sides, extra in zip(full, padding, self.output_padding, strict=True)
        ]
        return self._convolve(x, kernel, sizes, padding)
