"""`PReLU`: leaky ReLU with learned slopes."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import is_any_tensor
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import float32, is_float
from mixtrain.nn.layer.inputs import check_width, float_tensor, promote
from mixtrain.ops import nhwc
from mixtrain.typing import Tensor


class PReLU(Cell):
    """x where x > 0, else w * x, with one learned slope for all channels or one per channel.

    Args: channel, w: Number of slopes, 1 or the channels of the input; and their initial values: a float, a list or a
        tensor.
    Inputs: x (N, C, ...) or (N,), floating point.
    Returns: Shape of `x`, in the wider of the dtypes of `x` and the slopes.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.PReLU()(mixtrain.Tensor([[-4.0, 2.0]])).numpy().tolist()
        [[-1.0, 2.0]]

    Source: He et al., 2015; MindSpore, `mindspore.nn.PReLU`.
    """

    def __init__(self, channel: int = 1, w: float | Sequence[float] | Tensor = 0.25) -> None:
        super().__init__()
        where = self.cls_name
        self.channel = checks.integer(where, "channel", channel, at_least=1)
        if isinstance(w, (float, np.floating)):
            w = [float(w)] * self.channel
        if not isinstance(w, list) and not is_any_tensor(w):
            raise checks.fail_type(where, "w must be a float, a list of them or a Tensor", w, "w=0.25")
        slopes = backend.to_tensor(w, None if is_any_tensor(w) else float32)
        if not is_float(slopes.dtype):
            raise checks.fail_type(where, "w must hold floats", w, "w=0.25")
        if tuple(slopes.shape) != (self.channel,):
            raise checks.fail_value(
                where, f"w must have shape ({self.channel},), one slope for each channel", tuple(slopes.shape), "w=0.25"
            )
        self.w = Parameter(slopes, name="a")

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function."""
        x = float_tensor(self, x)
        if self.channel > 1 and len(x.shape) > 1:
            check_width(self, x, 1, self.channel, noun="channels", argument="channel")
        x, slopes = promote(x, self.w.value)
        if self.channel > 1:
            slopes = keras.ops.reshape(slopes, (1, -1) + (1,) * (len(x.shape) - 2))
        if self.channel > 1 and len(x.shape) == 4:
            last = nhwc.to_channels_last(x)
            return nhwc.from_channels_last(_rectify(last, keras.ops.transpose(slopes, (0, 2, 3, 1))))
        return nhwc.elementwise(lambda value: _rectify(value, slopes), x)


def _rectify(x: Tensor, slopes: Tensor) -> Tensor:
    return keras.ops.where(x > 0, x, x * slopes)
