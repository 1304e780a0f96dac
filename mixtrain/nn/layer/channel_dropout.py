"""`Dropout1d`, `Dropout2d` and `Dropout3d`: random zeroing of whole channels in training."""

from __future__ import annotations

from typing import ClassVar

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.nn.layer.inputs import check_rank, float_tensor
from mixtrain.ops import nhwc
from mixtrain.seed import next_seed
from mixtrain.typing import Tensor


class _ChannelDropout(Cell):
    """Base class of channel dropouts; a subclass defines the ranks and axes of the input."""

    _axes: ClassVar[tuple[tuple[int, ...], str]]

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = checks.number(self.cls_name, "p", p, at_least=0, at_most=1, example=0.5)
        self.keep_prob = 1.0 - self.p
        # Its state is a variable, so each call of a compiled step samples anew; it is not a Parameter of the network.
        self.seed_generator = keras.random.SeedGenerator(seed=next_seed())

    def construct(self, x: Tensor) -> Tensor:
        """Drop channels of `x` in training."""
        if not self.training or self.keep_prob == 1.0:
            return x
        x = float_tensor(self, x)
        check_rank(self, x, *self._axes)
        channel_axis = 1 if len(x.shape) == max(self._axes[0]) else 0
        shape = (*keras.ops.shape(x)[: channel_axis + 1], *(1,) * (len(x.shape) - channel_axis - 1))
        mask = keras.random.uniform(shape, dtype="float32", seed=self.seed_generator) < self.keep_prob
        # The maximum avoids a division by zero where p is 1.
        scale = keras.ops.cast(mask, x.dtype) / max(self.keep_prob, 1e-7)
        if len(x.shape) == 4 and channel_axis:
            last = nhwc.to_channels_last(x)
            return nhwc.from_channels_last(last * keras.ops.transpose(scale, (0, 2, 3, 1)))
        return x * scale

    def extend_repr(self) -> str:
        return f"p={self.p}"


class Dropout1d(_ChannelDropout):
    """In training, drop whole channels of sequences (N, C, L) or (C, L) with probability `p`; scale up the rest.

    Example: ``nn.Dropout1d(p=0.5)(x)``. Source: Tompson et al., 2015; MindSpore, `mindspore.nn.Dropout1d`.
    """

    _axes = (2, 3), "(N, C, L) or (C, L)"


class Dropout2d(_ChannelDropout):
    """In training, drop whole channels of images (N, C, H, W), each with probability `p`; scale up the rest.

    Example: ``nn.Dropout2d(p=0.5)(x)``. Source: Tompson et al., 2015; MindSpore, `mindspore.nn.Dropout2d`.
    """

    _axes = (4,), "(N, C, H, W)"


class Dropout3d(_ChannelDropout):
    """In training, drop whole channels of volumes (N, C, D, H, W), each with probability `p`; scale up the rest.

    Example: ``nn.Dropout3d(p=0.5)(x)``. Source: Tompson et al., 2015; MindSpore, `mindspore.nn.Dropout3d`.
    """

    _axes = (5,), "(N, C, D, H, W)"
