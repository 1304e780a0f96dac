"""`Conv1dTranspose`, `Conv2dTranspose` and `Conv3dTranspose`: transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import keras

from mixtrain import checks
from mixtrain.cell.tree import name_of
from mixtrain.common.initializer import InitializerLike
from mixtrain.dtype import float32
from mixtrain.nn.layer.convolution import Convolution, SequenceConvolution
from mixtrain.nn.layer.windows import window
from mixtrain.ops.conv_formula import transposed_convolve
from mixtrain.ops.windows import Window, pad
from mixtrain.typing import DTypeLike, Tensor


class _ConvTranspose(Convolution):
    """Transposed convolution over any number of axes."""

    _transposed: ClassVar[bool] = True
    # By how much the output of each axis is longer than without `output_padding`, computed and not filled with zeros.
    _extra: Window = ()

    def _check_sizes(self, x: Tensor) -> None:
        for size, output_size in zip(tuple(x.shape)[2:], self._output_sizes(x)[-self._rank :], strict=True):
            if size is not None and output_size < 1:
                raise ValueError(
                    f"{name_of(self)}: expected padding that leaves some output; got padding {self.padding} with input "
                    f"shape {tuple(x.shape)}. Write a smaller padding or a larger input."
                )

    def _output_sizes(self, x: Tensor) -> list[Any]:
        """Return the size of the output along each axis of the kernel, for an input (N, C, *sizes)."""
        sizes = tuple(keras.ops.shape(x))[2:]
        sizes = (1,) * (len(self.kernel_size) - len(sizes)) + sizes
        rows = zip(sizes, self._effective_kernel_size(), self.stride, self._pads, strict=True)
        if self.pad_mode == "pad":
            return [(size - 1) * stride + kernel - before - after for size, kernel, stride, (before, after) in rows]
        if self.pad_mode == "same":
            return [size * stride for size, _, stride, _ in rows]
        return [size * stride + max(kernel - stride, 0) for size, kernel, stride, _ in rows]

    def _convolve(self, x: Tensor, weight: Tensor) -> Tensor:
        """Apply the transposed convolution by the weight (in, out, *kernel_size) to a channels-last tensor."""
        sizes = self._output_sizes(keras.ops.moveaxis(x, -1, 1)) if self.pad_mode == "pad" else []
        y = transposed_convolve(
            x, weight, stride=self.stride, padding="same" if self.pad_mode == "same" else "valid",
            dilation=self.dilation, groups=self.group,
        )
        beyond = [(0, 0)]
        for axis, (size, (before, after)) in enumerate(zip(sizes, self._pads, strict=False)):
            extra = self._extra[axis] if self._extra else 0
            y = y[(slice(None),) * (axis + 1) + (slice(before, before + size + min(extra, after)),)]
            beyond.append((0, max(0, extra - after)))
        return keras.ops.pad(y, [*beyond, (0, 0)]) if any(after for _, after in beyond) else y

    def _checked_output_padding(self, output_padding: int | Sequence[int]) -> Window:
        """Check `output_padding` and convert it to one int per axis."""
        where = self.cls_name
        values = window(where, "output_padding", output_padding, self._rank, at_least=0)
        if any(values) and self.pad_mode != "pad":
            raise checks.fail_value(
                where, f'output_padding must be 0 with pad_mode="{self.pad_mode}"', output_padding, 'pad_mode="pad"'
            )
        for value, *steps in zip(values, self.stride, self.dilation, strict=True):
            if value >= max(steps):
                raise checks.fail_value(
                    where, f"output_padding must be less than {max(steps)}, the larger of stride and dilation",
                    output_padding, "output_padding=0",
                )
        return values


class Conv1dTranspose(SequenceConvolution, _ConvTranspose):
    """Upsample a sequence with a learned kernel: the transpose of `Conv1d`.

    Args:
        in_channels, out_channels, kernel_size, stride, dilation, group, has_bias, weight_init, bias_init: As in
            `Conv1d`.
        pad_mode: "same" (the output has L * stride elements), "valid" or "pad".
        padding: With "pad": elements cropped from both ends, an int.
        dtype: Dtype of the parameters; the weight is (in_channels, out_channels // group, 1, kernel_size).

    Inputs: x (N, in_channels, L), floating point.
    Returns: (N, out_channels, L').

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.Conv1dTranspose(2, 4, 3, 2)(mixtrain.Tensor(np.ones((1, 2, 8), np.float32))).shape)
        (1, 4, 16)
    """


class Conv2dTranspose(_ConvTranspose):
    """Upsample images with a learned kernel: the transpose of `Conv2d`.

    Args:
        in_channels, out_channels, kernel_size, stride, dilation, group, has_bias, weight_init, bias_init: As in
            `Conv2d`.
        pad_mode, dtype: As in `Conv1dTranspose`; the weight is (in_channels, out_channels // group, height, width).
        padding: With "pad": rows and columns cropped from all sides, an int or (top, bottom, left, right).
        output_padding: With "pad": rows and columns of zeros added at the end, fewer than max(stride, dilation).

    Inputs: x (N, in_channels, H, W), floating point.
    Returns: (N, out_channels, H', W').

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.Conv2dTranspose(2, 4, 3, 2)(mixtrain.Tensor(np.ones((1, 2, 8, 8), np.float32))).shape)
        (1, 4, 16, 16)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        pad_mode: str = "same", padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1, group: int = 1, has_bias: bool = False,
        weight_init: InitializerLike | None = None, bias_init: InitializerLike | None = None,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, dtype,
        )
        self.output_padding = output_padding
        self._output_pads = self._checked_output_padding(output_padding)

    def _finish(self, y: Tensor) -> Tensor:
        return pad(y, tuple((0, after) for after in self._output_pads))


class Conv3dTranspose(_ConvTranspose):
    """Upsample volumes with a learned kernel: the transpose of `Conv3d`.

    Args:
        in_channels, out_channels, kernel_size, stride, dilation, group, has_bias, weight_init, bias_init, data_format:
            As in `Conv3d`.
        pad_mode, dtype: As in `Conv1dTranspose`; the weight is (in_channels, out_channels // group, *kernel_size).
        padding: With "pad": elements cropped from all sides, an int or (head, tail, top, bottom, left, right).
        output_padding: With "pad": by how much the output is longer, less than max(stride, dilation): an int or (depth,
            height, width).

    Inputs: x (N, in_channels, D, H, W), floating point.
    Returns: (N, out_channels, D', H', W').

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.Conv3dTranspose(1, 2, 3, 2)(mixtrain.Tensor(np.ones((1, 1, 4, 4, 4), np.float32))).shape)
        (1, 2, 8, 8, 8)
    """

    _rank = 3

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        pad_mode: str = "same", padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, group: int = 1,
        output_padding: int | Sequence[int] = 0, has_bias: bool = False, weight_init: InitializerLike | None = None,
        bias_init: InitializerLike | None = None, data_format: str = "NCDHW", dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, dtype, data_format,
        )
        self.output_padding = output_padding
        self._extra = self._checked_output_padding(output_padding)
