"""`MaxPool1d` and `MaxPool2d`: max pooling."""

from __future__ import annotations

from collections.abc import Sequence

from mixtrain import checks
from mixtrain.nn.layer.pooling import Pool
from mixtrain.nn.layer.windows import pair
from mixtrain.ops.pool_formula import max_pool, padded_max_pool
from mixtrain.ops.windows import Pair
from mixtrain.typing import Tensor


class _MaxPool(Pool):
    """Max pooling of images, and of sequences as images of height 1."""

    def __init__(
        self, kernel_size: int | Sequence[int], stride: int | Sequence[int], pad_mode: str,
        padding: int | Sequence[int], dilation: int | Sequence[int], return_indices: bool,
        ceil_mode: bool, data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, data_format)
        if self._rank == 1:
            dilation = (1, checks.integer(self.cls_name, "dilation", dilation, at_least=1))
        self.dilation = pair(self.cls_name, "dilation", dilation)
        self.return_indices = checks.boolean(self.cls_name, "return_indices", return_indices)
        if self.pad_mode != "PAD" and (self.dilation != (1, 1) or return_indices or ceil_mode):
            raise checks.fail_value(
                self.cls_name, 'dilation, return_indices and ceil_mode need pad_mode="pad"', pad_mode, 'pad_mode="pad"'
            )

    def _effective_kernel_size(self) -> Pair:
        (height, width), dilation = self._kernel, self.dilation
        return (height - 1) * dilation[0] + 1, (width - 1) * dilation[1] + 1

    def _pool(self, x: Tensor) -> Tensor:
        if self.pad_mode == "SAME":
            return max_pool(x, self._kernel, self._stride, "same")
        if self.dilation != (1, 1) or self.return_indices:
            self._require_static_size(x)
        return padded_max_pool(
            x, self._kernel, self._stride, self.dilation, self._pads, self._overrun(x),
            return_indices=self.return_indices,
        )


class MaxPool2d(_MaxPool):
    """Max pooling of images.

    Args:
        kernel_size, stride: Size and stride of the window: an int or (height, width), both 1 by default.
        pad_mode: "valid", "same" or "pad", case-insensitive.
        padding: With "pad": an int or (height, width); padding is never the maximum.
        dilation: With "pad": spacing between the window's elements.
        return_indices: With "pad": whether to return (output, indices): the flat index in H * W of each maximum, int64.
        ceil_mode: With "pad": whether the output includes a partial window at the end.
        data_format: "NCHW", the only supported value.

    Inputs: x (N, C, H, W) or (C, H, W), floating point.
    Returns: (N, C, H', W') or (C, H', W'), dtype of `x`.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.MaxPool2d(2, 2)(mixtrain.Tensor(np.ones((1, 3, 8, 8), np.float32))).shape)
        (1, 3, 4, 4)
    """

    def __init__(
        self, kernel_size: int | Sequence[int] = 1, stride: int | Sequence[int] = 1, pad_mode: str = "valid",
        padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, return_indices: bool = False,
        ceil_mode: bool = False, data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode, data_format)


class MaxPool1d(_MaxPool):
    """Max pooling of sequences.

    Args:
        pad_mode, ceil_mode, return_indices: As in `MaxPool2d`; indices are those in L.
        kernel_size, stride, padding, dilation: As there, but ints.

    Inputs: x (N, C, L) or (C, L), floating point.
    Returns: (N, C, L') or (C, L'), dtype of `x`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.MaxPool1d(2, 2)(mixtrain.Tensor([[1.0, 3.0, 2.0, 0.0]])).numpy().tolist()
        [[3.0, 2.0]]
    """

    _rank = 1

    def __init__(
        self, kernel_size: int = 1, stride: int = 1, pad_mode: str = "valid", padding: int | Sequence[int] = 0,
        dilation: int = 1, return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode)
