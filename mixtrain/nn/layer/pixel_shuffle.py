"""`PixelShuffle` and `PixelUnshuffle`: rearrangement of channels into pixels and back."""

from __future__ import annotations

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.ops.inputs import tensor
from mixtrain.typing import Tensor


class PixelShuffle(Cell):
    """Rearrange channels into an image `upscale_factor` times as high and wide.

    Args: upscale_factor: Factor of the height and width.
    Inputs: x (..., C * upscale_factor ** 2, H, W), any numeric dtype.
    Returns: (..., C, H * upscale_factor, W * upscale_factor).

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.PixelShuffle(2)(mixtrain.Tensor(np.ones((1, 8, 3, 3), np.float32))).shape)
        (1, 2, 6, 6)

    Source: Shi et al., 2016; MindSpore, `mindspore.nn.PixelShuffle`.
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = checks.integer(self.cls_name, "upscale_factor", upscale_factor, at_least=1, example=2)

    def construct(self, x: Tensor) -> Tensor:
        """Rearrange the channels of `x` into pixels."""
        x, factor = _image(self, x), self.upscale_factor
        if x.shape[-3] % factor**2:
            raise checks.fail_value(
                name_of(self), f"the channels must be a multiple of {factor**2}", x.shape[-3],
                f"an input of {factor**2} * C channels",
            )
        *batch, channels, height, width = keras.ops.shape(x)
        split = keras.ops.reshape(x, (-1, channels // factor**2, factor, factor, height, width))
        pixels = keras.ops.transpose(split, (0, 1, 4, 2, 5, 3))
        return keras.ops.reshape(pixels, (*batch, channels // factor**2, height * factor, width * factor))


class PixelUnshuffle(Cell):
    """The inverse of `PixelShuffle` by `downscale_factor`. Example: ``nn.PixelUnshuffle(2)(x)``."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = checks.integer(
            self.cls_name, "downscale_factor", downscale_factor, at_least=1, example=2
        )

    def construct(self, x: Tensor) -> Tensor:
        """Rearrange the pixels of `x` into channels."""
        x, factor = _image(self, x), self.downscale_factor
        if x.shape[-2] % factor or x.shape[-1] % factor:
            raise checks.fail_value(
                name_of(self), f"height and width must be multiples of {factor}", tuple(x.shape[-2:]), "a larger image"
            )
        *batch, channels, height, width = keras.ops.shape(x)
        split = keras.ops.reshape(x, (-1, channels, height // factor, factor, width // factor, factor))
        pixels = keras.ops.transpose(split, (0, 1, 3, 5, 2, 4))
        return keras.ops.reshape(pixels, (*batch, channels * factor**2, height // factor, width // factor))


def _image(cell: Cell, x: Tensor) -> Tensor:
    """Convert an input to a tensor (..., C, H, W)."""
    x = tensor(name_of(cell), x)
    if len(x.shape) < 3:
        raise checks.fail_value(
            name_of(cell), "the input must have the axes (..., C, H, W)", tuple(x.shape), "an image"
        )
    return x
