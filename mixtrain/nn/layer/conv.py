"""`Conv1d`, `Conv2d` and `Conv3d`: convolutions of sequences, images and volumes."""

from __future__ import annotations

from collections.abc import Sequence

from mixtrain.common.initializer import InitializerLike
from mixtrain.dtype import float32
from mixtrain.nn.layer.convolution import Convolution, SequenceConvolution
from mixtrain.nn.layer.inputs import check_fits
from mixtrain.ops.conv_formula import convolve
from mixtrain.typing import DTypeLike, Tensor


class _Conv(Convolution):
    """Convolution over any number of axes."""

    def _check_sizes(self, x: Tensor) -> None:
        if self.pad_mode != "same":
            check_fits(self, x, self._effective_kernel_size(), self._pads)

    def _convolve(self, x: Tensor, weight: Tensor) -> Tensor:
        """Convolve a channels-last tensor with the weight (out, in, *kernel_size)."""
        return convolve(
            x, weight, stride=self.stride, pad_mode=self.pad_mode, pads=self._pads, dilation=self.dilation,
            groups=self.group,
        )


class Conv1d(SequenceConvolution, _Conv):
    """Convolve a sequence with a learned kernel.

    Args:
        in_channels, out_channels: Channels of the input and of the output.
        kernel_size, stride, dilation: Size, stride and spacing of the kernel, ints.
        pad_mode: "same" (the output has ceil(L / stride) elements), "valid" (no padding) or "pad".
        padding: With "pad": zeros added on both sides, an int.
        group: Number of groups that the channels are split into; each is convolved separately.
        has_bias: Whether a bias is added; False by default.
        weight_init, bias_init: Initial values, anything that `initializer` accepts; default: uniform within 1 /
            sqrt(fan in).
        dtype: Dtype of the parameters; the weight is (out_channels, in_channels // group, 1, kernel_size).

    Inputs: x (N, in_channels, L), floating point.
    Returns: (N, out_channels, L'), in the wider of the dtypes of `x` and the weight.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.Conv1d(2, 4, 3)(mixtrain.Tensor(np.ones((1, 2, 8), np.float32))).shape)
        (1, 4, 8)
    """


class Conv2d(_Conv):
    """Convolve images with a learned kernel over height and width.

    Args:
        in_channels, out_channels, pad_mode, group, has_bias, weight_init, bias_init: As in `Conv1d`.
        kernel_size, stride, dilation: Size, stride and spacing of the kernel: an int or (height, width).
        padding: With "pad": zeros added on all sides, or (top, bottom, left, right).
        data_format, dtype: "NCHW", the only supported value; and the dtype of the parameters.

    Inputs: x (N, in_channels, H, W), floating point.
    Returns: (N, out_channels, H', W'), in the wider of the dtypes of `x` and the weight.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> conv = nn.Conv2d(1, 6, 5, pad_mode="valid")
        >>> tuple(conv(mixtrain.Tensor(np.ones((2, 1, 32, 32), np.float32))).shape)
        (2, 6, 28, 28)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        pad_mode: str = "same", padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, group: int = 1,
        has_bias: bool = False, weight_init: InitializerLike | None = None, bias_init: InitializerLike | None = None,
        data_format: str = "NCHW", dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, dtype, data_format,
        )


class Conv3d(_Conv):
    """Convolve volumes with a learned kernel over depth, height and width.

    Args:
        in_channels, out_channels, pad_mode, group, has_bias, weight_init, bias_init: As in `Conv1d`.
        kernel_size, stride, dilation: Size, stride and spacing of the kernel: an int or (depth, height, width).
        padding: With "pad": zeros added on all sides, or (head, tail, top, bottom, left, right).
        data_format, dtype: "NCDHW", the only supported value; and the dtype of the parameters.

    Inputs: x (N, in_channels, D, H, W), floating point.
    Returns: (N, out_channels, D', H', W'), in the wider of the dtypes of `x` and the weight.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.Conv3d(1, 2, 3)(mixtrain.Tensor(np.ones((1, 1, 4, 4, 4), np.float32))).shape)
        (1, 2, 4, 4, 4)
    """

    _rank = 3

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        pad_mode: str = "same", padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, group: int = 1,
        has_bias: bool = False, weight_init: InitializerLike | None = None, bias_init: InitializerLike | None = None,
        data_format: str = "NCDHW", dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, dtype, data_format,
        )
