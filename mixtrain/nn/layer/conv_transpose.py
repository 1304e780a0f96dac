"""`Conv1dTranspose`, `Conv2dTranspose` and `Conv3dTranspose`: convolutions run backwards, which enlarge."""

from __future__ import annotations

from typing import Any, ClassVar

import keras

from mixtrain import checks
from mixtrain.dtype import float32
from mixtrain.nn.layer.convolution import Convolution
from mixtrain.nn.layer.inputs import name_of
from mixtrain.nn.layer.windows import window
from mixtrain.ops.conv_formula import convolve_back
from mixtrain.ops.windows import Window, pad


class _ConvTranspose(Convolution):
    """The transposed convolution, for any number of axes."""

    _transposed: ClassVar[bool] = True

    def _check_sizes(self, x: Any) -> None:
        for size, length in zip(tuple(x.shape)[2:], self._lengths(x)[-self._rank :], strict=True):
            if size is not None and length < 1:
                raise ValueError(
                    f"{name_of(self)}: expected padding that leaves some output; got padding {self.padding} with input "
                    f"shape {tuple(x.shape)}. Write a smaller padding or a larger input."
                )

    def _lengths(self, x: Any) -> list[Any]:
        """Return the output's size along each axis of the window, for an input (N, C, *sizes)."""
        sizes = tuple(keras.ops.shape(x))[2:]
        sizes = (1,) * (len(self.kernel_size) - len(sizes)) + sizes
        rows = zip(sizes, self._span(), self.stride, self._sides, strict=True)
        if self.pad_mode == "pad":
            return [(size - 1) * step + span - before - after for size, span, step, (before, after) in rows]
        more = 0 if self.pad_mode == "same" else 1
        return [size * step + more * max(span - step, 0) for size, span, step, _ in rows]

    def _convolve(self, x: Any, weight: Any) -> Any:
        """Spread a channels-last tensor by the weight (in, out, *window)."""
        lengths = self._lengths(keras.ops.moveaxis(x, -1, 1)) if self.pad_mode == "pad" else []
        y = convolve_back(
            x, weight, stride=self.stride, padding="same" if self.pad_mode == "same" else "valid",
            dilation=self.dilation, groups=self.group,
        )
        for axis, (length, (before, _)) in enumerate(zip(lengths, self._sides, strict=False)):
            y = y[(slice(None),) * (axis + 1) + (slice(before, before + length),)]
        return y

    def _output_padding(self, output_padding: Any) -> Window:
        """Return `output_padding` as one int for each axis, checked."""
        where = self.cls_name
        values = window(where, "output_padding", output_padding, self._rank, at_least=0)
        if any(values) and self.pad_mode != "pad":
            raise checks.fail_value(
                where, f'output_padding must be 0 with pad_mode="{self.pad_mode}"', output_padding, 'pad_mode="pad"'
            )
        for value, step, gap in zip(values, self.stride, self.dilation, strict=True):
            if value >= max(step, gap):
                raise checks.fail_value(
                    where, f"output_padding must be less than {max(step, gap)}, the larger of stride and dilation",
                    output_padding, "output_padding=0",
                )
        return values


class Conv1dTranspose(_ConvTranspose):
    """Enlarge a sequence by a learned window: `Conv1d` run backwards.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Window, an int.
        stride: Step of the window, an int.
        pad_mode: "same" (the output has L * stride elements), "valid" or "pad".
        padding: With "pad": elements cut off both ends, an int.
        dilation: Distance between the window's elements, an int.
        group: Number of groups that channels are split into.
        has_bias: Whether a bias is added; False by default.
        weight_init: Initial weight, anything that `initializer` accepts; by default uniform within 1 / sqrt(fan in).
        bias_init: Initial bias, likewise.
        dtype: Dtype of the parameters; the weight is (in_channels, out_channels // group, 1, kernel_size).

    Inputs:
        x (N, in_channels, L), floating point.

    Returns:
        (N, out_channels, L').

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, or `x` has the wrong number of axes or channels.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.Conv1dTranspose(2, 4, 3, 2)(mixtrain.Tensor(np.ones((1, 2, 8), np.float32))).shape)
        (1, 4, 16)

    Source: MindSpore, `mindspore.nn.Conv1dTranspose`.
    """

    _rank: ClassVar[int] = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        pad_mode: str = "same",
        padding: int = 0,
        dilation: int = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, dtype,
        )


class Conv2dTranspose(_ConvTranspose):
    """Enlarge images by a learned window: `Conv2d` run backwards.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Window: an int or (height, width).
        stride: Step of the window: an int or (height, width).
        pad_mode: "same" (the output has size * stride rows and columns), "valid" or "pad".
        padding: With "pad": rows and columns cut off all sides, an int or (top, bottom, left, right).
        output_padding: With "pad": rows and columns of zeros at the end, less than the larger of stride and dilation.
        dilation: Distance between the window's elements: an int or (height, width).
        group: Number of groups that channels are split into.
        has_bias: Whether a bias is added; False by default.
        weight_init: Initial weight, anything that `initializer` accepts; by default uniform within 1 / sqrt(fan in).
        bias_init: Initial bias, likewise.
        dtype: Dtype of the parameters; the weight is (in_channels, out_channels // group, height, width).

    Inputs:
        x (N, in_channels, H, W), floating point.

    Returns:
        (N, out_channels, H', W').

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, or `x` has the wrong number of axes or channels.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.Conv2dTranspose(2, 4, 3, 2)(mixtrain.Tensor(np.ones((1, 2, 8, 8), np.float32))).shape)
        (1, 4, 16, 16)

    Source: MindSpore, `mindspore.nn.Conv2dTranspose`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, dtype,
        )
        self.output_padding = output_padding
        self._more = self._output_padding(output_padding)

    def _finish(self, y: Any) -> Any:
        return pad(y, tuple((0, more) for more in self._more))


class Conv3dTranspose(_ConvTranspose):
    """Enlarge volumes by a learned window: `Conv3d` run backwards.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Window: an int or (depth, height, width).
        stride: Step of the window: an int or (depth, height, width).
        pad_mode: "same" (the output has size * stride elements along each axis), "valid" or "pad".
        padding: With "pad": elements cut off all sides, an int or (head, tail, top, bottom, left, right).
        dilation: Distance between the window's elements: an int or (depth, height, width).
        group: Number of groups that channels are split into.
        output_padding: 0, the only one.
        has_bias: Whether a bias is added; False by default.
        weight_init: Initial weight, anything that `initializer` accepts; by default uniform within 1 / sqrt(fan in).
        bias_init: Initial bias, likewise.
        data_format: "NCDHW", the only supported value.
        dtype: Dtype of the parameters; the weight is (in_channels, out_channels // group, *window).

    Inputs:
        x (N, in_channels, D, H, W), floating point.

    Returns:
        (N, out_channels, D', H', W').

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, or `x` has the wrong number of axes or channels.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.Conv3dTranspose(1, 2, 3, 2)(mixtrain.Tensor(np.ones((1, 1, 4, 4, 4), np.float32))).shape)
        (1, 2, 8, 8, 8)

    Source: MindSpore, `mindspore.nn.Conv3dTranspose`.
    """

    _rank: ClassVar[int] = 3

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
        output_padding: Any = 0,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCDHW",
        dtype: Any = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, dtype, data_format,
        )
        self.output_padding = output_padding
        if any(self._output_padding(output_padding)):
            raise checks.fail_value(
                self.cls_name, "output_padding must be 0 for volumes", output_padding, "nn.Pad after the layer"
            )
