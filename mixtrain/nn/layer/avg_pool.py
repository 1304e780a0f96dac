"""`AvgPool1d` and `AvgPool2d`: average pooling."""

from __future__ import annotations

from collections.abc import Sequence

from mixtrain import checks
from mixtrain.nn.layer.pooling import Pool
from mixtrain.ops.pool_formula import padded_avg_pool, same_avg_pool
from mixtrain.typing import Tensor


class _AvgPool(Pool):
    """Average pooling of images, and of sequences as images of height 1."""

    def __init__(
        self, kernel_size: int | Sequence[int], stride: int | Sequence[int], pad_mode: str,
        padding: int | Sequence[int], ceil_mode: bool, count_include_pad: bool,
        divisor_override: int | None = None, data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, data_format)
        self.count_include_pad = checks.boolean(self.cls_name, "count_include_pad", count_include_pad)
        if divisor_override is not None:
            checks.integer(self.cls_name, "divisor_override", divisor_override, at_least=1)
        self.divisor_override: int | None = divisor_override

    def _pool(self, x: Tensor) -> Tensor:
        divisor = self.divisor_override
        if self.pad_mode != "SAME":
            return padded_avg_pool(
                x, self._kernel, self._stride, self._pads, self._overrun(x), include_pad=self.count_include_pad,
                divisor=divisor,
            )
        if divisor is not None:
            self._require_static_size(x)
        return same_avg_pool(x, self._kernel, self._stride, divisor)


class AvgPool2d(_AvgPool):
    """Average pooling of images.

    Args:
        kernel_size, stride: Size and stride of the window: an int or (height, width), both 1 by default.
        pad_mode: "valid", "same" (the mean excludes padding) or "pad", case-insensitive.
        padding: With "pad": zeros, an int or (height, width).
        ceil_mode: Whether the output includes a partial window at the end.
        count_include_pad: With "pad": whether the mean includes the padding.
        divisor_override: Divisor of the sums, instead of the window's size.
        data_format: "NCHW", the only supported value.

    Inputs: x (N, C, H, W) or (C, H, W), floating point.
    Returns: (N, C, H', W') or (C, H', W'), dtype of `x`.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.AvgPool2d(2, 2)(mixtrain.Tensor(np.ones((1, 3, 8, 8), np.float32))).shape)
        (1, 3, 4, 4)
    """

    def __init__(
        self, kernel_size: int | Sequence[int] = 1, stride: int | Sequence[int] = 1, pad_mode: str = "valid",
        padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None, data_format: str = "NCHW",
    ) -> None:
        super().__init__(
            kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad, divisor_override, data_format
        )


class AvgPool1d(_AvgPool):
    """Average pooling of sequences.

    Args:
        pad_mode, ceil_mode, count_include_pad: As in `AvgPool2d`.
        kernel_size, stride, padding: As there, but ints.

    Inputs: x (N, C, L) or (C, L), floating point.
    Returns: (N, C, L') or (C, L'), dtype of `x`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.AvgPool1d(2, 2)(mixtrain.Tensor([[1.0, 3.0, 2.0, 0.0]])).numpy().tolist()
        [[2.0, 1.0]]
    """

    _rank = 1

    def __init__(
        self, kernel_size: int = 1, stride: int = 1, pad_mode: str = "valid", padding: int | Sequence[int] = 0,
        ceil_mode: bool = False, count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad)
