"""`AdaptiveAvgPool1d`, `AdaptiveAvgPool2d` and `AdaptiveMaxPool1d`: poolings to a given output size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.nn.layer.inputs import check_rank, float_tensor
from mixtrain.ops import nhwc
from mixtrain.ops.adaptive import pool_to
from mixtrain.typing import Tensor


class _AdaptivePool(Cell):
    """Base class of adaptive poolings, whose windows divide each axis as evenly as possible."""

    _rank: ClassVar[int] = 2
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(self, output_size: int | Sequence[int | None]) -> None:
        super().__init__()
        values = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * self._rank
        if len(values) != self._rank:
            expected = "an int or two of them" if self._rank == 2 else "an int"
            raise checks.fail_value(self.cls_name, f"output_size must be {expected}", output_size, "output_size=1")
        for value in values:
            if value is not None or self._rank == 1:
                checks.integer(self.cls_name, "output_size", value, at_least=1)
        self.output_size, self._sizes = output_size, values

    def construct(self, x: Tensor) -> Tensor:
        """Pool `x`, batched or not."""
        x = float_tensor(self, x)
        axes = "(N, C, H, W) or (C, H, W)" if self._rank == 2 else "(N, C, L) or (C, L)"
        check_rank(self, x, (self._rank + 1, self._rank + 2), axes)
        if len(x.shape) == self._rank + 1:
            return self.construct(x[None])[0]
        sizes = tuple(x.shape)[2:]
        if None in sizes:
            raise ValueError(
                f"{name_of(self)}: expected an input of known sizes; got input shape {tuple(x.shape)}. Write images of "
                "one size, or keras.ops.mean(x, (2, 3))."
            )
        sizes = tuple(size if value is None else value for value, size in zip(self._sizes, sizes, strict=True))
        y = pool_to(nhwc.to_channels_last(x), sizes, type(self)._function)
        return nhwc.from_channels_last(y)


class AdaptiveAvgPool1d(_AdaptivePool):
    """Average pooling of sequences to `output_size` elements, an int.

    Inputs: x (N, C, L) or (C, L), floating point.
    Returns: (N, C, output_size) or (C, output_size), dtype of `x`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.AdaptiveAvgPool1d(2)(mixtrain.Tensor([[1.0, 3.0, 2.0, 0.0]])).numpy().tolist()
        [[2.0, 1.0]]
    """

    _rank = 1
    _function = staticmethod(keras.ops.mean)


class AdaptiveAvgPool2d(_AdaptivePool):
    """Average pooling of images to `output_size`.

    Args: output_size: Size of the output: an int or (height, width); None keeps the input's.
    Inputs: x (N, C, H, W) or (C, H, W), floating point.
    Returns: (N, C, height, width) or (C, height, width), dtype of `x`.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.AdaptiveAvgPool2d((1, None))(mixtrain.Tensor(np.ones((2, 3, 5, 4), np.float32))).shape)
        (2, 3, 1, 4)
    """

    _function = staticmethod(keras.ops.mean)


class AdaptiveMaxPool1d(_AdaptivePool):
    """Max pooling of sequences to `output_size` elements, an int.

    Inputs: x (N, C, L) or (C, L), floating point.
    Returns: (N, C, output_size) or (C, output_size), dtype of `x`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.AdaptiveMaxPool1d(2)(mixtrain.Tensor([[1.0, 3.0, 2.0, 0.0]])).numpy().tolist()
        [[3.0, 2.0]]
    """

    _rank = 1
    _function = staticmethod(keras.ops.max)
