"""Convolutions run backwards, as primitives whose weight comes with the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import keras

from mixtrain import checks
from mixtrain.ops.conv_formula import convolve_back
from mixtrain.ops.inputs import as_floats, rank_of, values_of
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.volumes import around_of, sizes_of, to_first, to_last
from mixtrain.ops.windows import Sides, Window, mode_of


class _ConvTranspose(Primitive):
    """The base: settings, and the whole of what the windows cover, cut or filled up to a size."""

    _rank: ClassVar[int]

    def _set(
        self, pad_mode: Any, padding: Any, mode: int, stride: Any, dilation: Any, group: int, data_format: str
    ) -> None:
        super().__init__()
        where = self.name
        self.pad_mode = mode_of(where, pad_mode, ("valid", "same", "pad"))
        self.padding = around_of(where, padding, self._rank)
        checks.one_of(where, "mode", mode, (1,))
        self.stride = sizes_of(where, "stride", stride, self._rank)
        self.dilation = sizes_of(where, "dilation", dilation, self._rank)
        self.group = checks.integer(where, "group", group, at_least=1)
        checks.one_of(where, "data_format", data_format, ("NCHW" if self._rank == 2 else "NCDHW",))

    def _covered(self, dout: Any, weight: Any) -> tuple[Any, Any]:
        """Return the inputs as tensors, checked."""
        x, kernel = as_floats(self.name, dout), as_floats(self.name, weight)
        if rank_of(x) != self._rank + 2 or rank_of(kernel) != self._rank + 2 or x.shape[1] != kernel.shape[0]:
            raise ValueError(
                f"{self.name}: expected dout (N, C, *sizes) and weight (C, channels // group, *window), of "
                f"{self._rank + 2} axes; got shapes {tuple(x.shape)} and {tuple(kernel.shape)}. Write a weight whose "
                "first axis is dout's second."
            )
        return x, keras.ops.cast(kernel, x.dtype)

    def _spans(self, kernel: Any) -> list[int]:
        return [(length - 1) * gap + 1 for length, gap in zip(kernel.shape[2:], self.dilation, strict=True)]

    def _spread(self, x: Any, kernel: Any, sizes: Sequence[int], around: Sides) -> Any:
        """Return what the windows cover, less what comes before the result, at a size."""
        y = convolve_back(
            to_last(x), kernel, stride=self.stride, padding="valid", dilation=self.dilation, groups=self.group
        )
        for axis, (size, (before, _)) in enumerate(zip(sizes, around, strict=True), start=1):
            y = y[(slice(None),) * axis + (slice(before, before + size),)]
        missing = [(0, size - there) for size, there in zip(sizes, y.shape[1:-1], strict=True)]
        return to_first(keras.ops.pad(y, [(0, 0), *missing, (0, 0)]) if any(map(any, missing)) else y)


class Conv2DTranspose(_ConvTranspose):
    """The gradient of `Conv2D` by its input: images spread over windows, whose weight comes with the call.

    Args:
        out_channel: Channels of what comes in, those that `Conv2D` put out.
        kernel_size: The window; the weight says it too.
        pad_mode: "valid", "same" or "pad", as the convolution had it.
        pad: With "pad": an int, or (top, bottom, left, right).
        pad_list: Another name of `pad`.
        mode: 1, the only one.
        stride: Step of the convolution's window.
        dilation: Distance between the window's elements.
        group: Number of groups that channels are split into.
        data_format: "NCHW".

    A call takes the images (N, C, H, W), the weight (C, channels / group, *window) and the shape of the result.

    Source: MindSpore, `mindspore.ops.Conv2DTranspose`.
    """

    _rank = 2

    def __init__(
        self, out_channel: int, kernel_size: Any, pad_mode: str = "valid", pad: Any = 0, pad_list: Any = None,
        mode: int = 1, stride: Any = 1, dilation: Any = 1, group: int = 1, data_format: str = "NCHW",
    ) -> None:
        self._set(pad_mode, pad if pad_list is None else pad_list, mode, stride, dilation, group, data_format)
        self.out_channel, self.kernel_size = out_channel, kernel_size

    def __call__(self, dout: Any, weight: Any, input_size: Any) -> Any:
        x, kernel = self._covered(dout, weight)
        shape = input_size if isinstance(input_size, (tuple, list)) else values_of(self.name, input_size).tolist()
        sizes = tuple(int(size) for size in shape)[2:]
        around: Sides = self.padding if self.pad_mode == "pad" else ((0, 0), (0, 0))
        if self.pad_mode == "same":
            rows = zip(x.shape[2:], self.stride, self._spans(kernel), sizes, strict=True)
            total = [max((count - 1) * step + span - size, 0) for count, step, span, size in rows]
            around = tuple((one // 2, one - one // 2) for one in total)
        return self._spread(x, kernel, sizes, around)


class Conv3DTranspose(_ConvTranspose):
    """Volumes spread over windows, whose weight comes with the call.

    Args:
        in_channel: Channels of what comes in.
        out_channel: Channels of what comes out.
        kernel_size: The window; the weight says it too.
        mode: 1, the only one.
        pad_mode: "valid" (all that the windows cover), "same" (size * stride) or "pad".
        pad: With "pad": what is cut off each side: an int, or six.
        stride: Distance between the windows of neighbors.
        dilation: Distance between the window's elements.
        group: Number of groups that channels are split into.
        output_padding: With "pad": how much is added at each axis's end.
        data_format: "NCDHW".

    A call takes the volumes (N, C, D, H, W) and the weight (C, channels / group, *window).

    Source: MindSpore, `mindspore.ops.Conv3DTranspose`.
    """

    _rank = 3

    def __init__(
        self, in_channel: int, out_channel: int, kernel_size: Any, mode: int = 1, pad_mode: str = "valid",
        pad: Any = 0, stride: Any = 1, dilation: Any = 1, group: int = 1, output_padding: Any = 0,
        data_format: str = "NCDHW",
    ) -> None:
        self._set(pad_mode, pad, mode, stride, dilation, group, data_format)
        self.in_channel, self.out_channel, self.kernel_size = in_channel, out_channel, kernel_size
        self.output_padding: Window = sizes_of(self.name, "output_padding", output_padding, 3, at_least=0)

    def __call__(self, dout: Any, weight: Any) -> Any:
        x, kernel = self._covered(dout, weight)
        rows = list(zip(x.shape[2:], self.stride, self._spans(kernel), strict=True))
        covered = [(count - 1) * step + span for count, step, span in rows]
        if self.pad_mode == "same":
            sizes = [count * step for count, step, _ in rows]
            total = [max(there - size, 0) for there, size in zip(covered, sizes, strict=True)]
            return self._spread(x, kernel, sizes, tuple((one // 2, one - one // 2) for one in total))
        around: Sides = self.padding if self.pad_mode == "pad" else ((0, 0),) * 3
        sizes = [there - sum(sides) + more for there, sides, more in zip(
            covered, around, self.output_padding, strict=True)]
        return self._spread(x, kernel, sizes, around)
