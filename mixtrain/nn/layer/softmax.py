"""`Softmax`, `LogSoftmax`, `Softmin`, `GLU` and `Softmax2d`: activations along one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.nn.layer.inputs import check_rank, float_tensor
from mixtrain.nn.layer.windows import is_integral
from mixtrain.typing import Tensor


class _AlongAxis(Cell):
    """Base class of activations along the axis `axis`."""

    _function: ClassVar[Callable[..., Tensor]]

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        if not is_integral(axis):
            raise checks.fail_type(self.cls_name, "axis must be an int", axis, "axis=-1")
        self.axis = int(axis)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function along the axis."""
        x = float_tensor(self, x)
        if not -len(x.shape) <= self.axis < len(x.shape):
            raise checks.fail_value(
                name_of(self), f"axis must be one of the {len(x.shape)} of the input", self.axis, "axis=-1"
            )
        return type(self)._function(x, axis=self.axis)


class Softmax(_AlongAxis):
    """exp(x) / sum(exp(x)) along `axis`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.Softmax()(mixtrain.Tensor([0.0, 0.0])).numpy().tolist()
        [0.5, 0.5]
    """

    _function = staticmethod(keras.ops.softmax)


class LogSoftmax(_AlongAxis):
    """The logarithm of `Softmax`, along `axis`, computed stably.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.LogSoftmax()(mixtrain.Tensor([[3.0]])).numpy().tolist()
        [[0.0]]
    """

    _function = staticmethod(keras.ops.log_softmax)


class Softmin(_AlongAxis):
    """`Softmax` of -x along `axis`. Example: ``nn.Softmin(-1)(x)``."""

    _function = staticmethod(lambda x, axis: keras.ops.softmax(-x, axis=axis))


class GLU(_AlongAxis):
    """The first half along `axis` times the sigmoid of the second half. Example: ``nn.GLU(-1)(x)``.

    Source: Dauphin et al., 2017; MindSpore, `mindspore.nn.GLU`.
    """

    _function = staticmethod(keras.ops.glu)


class Softmax2d(Cell):
    """`Softmax` over the channels of images (N, C, H, W). Example: ``nn.Softmax2d()(x)``."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Tensor) -> Tensor:
        """Apply softmax over the channels of `x`."""
        x = float_tensor(self, x)
        check_rank(self, x, (3, 4), "(N, C, H, W) or (C, H, W)")
        return keras.ops.softmax(x, axis=-3)
