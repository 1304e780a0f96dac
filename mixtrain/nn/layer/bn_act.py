"""`Conv2dBnAct` and `DenseBnAct`: a layer, batch normalization and an activation in one cell."""

from __future__ import annotations

from collections.abc import Sequence

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.common.initializer import InitializerLike
from mixtrain.nn.layer.activation import ActivationLike, activation_of
from mixtrain.nn.layer.batch_norm import BatchNorm1d, BatchNorm2d
from mixtrain.nn.layer.conv import Conv2d
from mixtrain.nn.layer.dense import Dense
from mixtrain.nn.layer.elementwise import LeakyReLU
from mixtrain.typing import Tensor


class _BnAct(Cell):
    """Base class: the normalization and activation after the first layer."""

    def _set_bn_act(
        self, norm: Cell, has_bn: bool, activation: ActivationLike | None, alpha: float, after_fake: bool
    ) -> None:
        where = self.cls_name
        self.has_bn = checks.boolean(where, "has_bn", has_bn)
        self.has_act = activation is not None
        self.after_fake = checks.boolean(where, "after_fake", after_fake)
        if has_bn:
            self.batchnorm = norm
        self.activation = LeakyReLU(alpha) if activation == "leakyrelu" else activation_of(where, activation)

    def _apply_bn_act(self, x: Tensor) -> Tensor:
        if self.has_bn:
            x = self.batchnorm(x)
        return self.activation(x) if self.has_act else x


class Conv2dBnAct(_BnAct):
    """`Conv2d`, then `BatchNorm2d`, then an activation.

    Args:
        in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias: As in `Conv2d`.
        weight_init, bias_init: Initial values, anything that `initializer` accepts.
        has_bn: Whether the output is normalized, with `momentum` and `eps` of `BatchNorm2d`.
        activation: A name, a Cell, a Keras layer or a function of a tensor; None for no activation.
        alpha: Slope of the activation "leakyrelu".
        after_fake: Accepted, without effect.

    Inputs: x (N, in_channels, H, W), floating point.
    Returns: (N, out_channels, H', W').

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> block = nn.Conv2dBnAct(1, 2, 3, has_bn=True, activation="relu")
        >>> tuple(block(mixtrain.Tensor(np.ones((1, 1, 4, 4), np.float32))).shape)
        (1, 2, 4, 4)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        pad_mode: str = "same", padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, group: int = 1,
        has_bias: bool = False, weight_init: InitializerLike | None = "normal",
        bias_init: InitializerLike | None = "zeros", has_bn: bool = False, momentum: float = 0.997, eps: float = 1e-5,
        activation: ActivationLike | None = None, alpha: float = 0.2, after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.conv = Conv2d(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init,
        )
        self._set_bn_act(BatchNorm2d(out_channels, eps, momentum), has_bn, activation, alpha, after_fake)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the convolution, the normalization and the activation to `x`."""
        return self._apply_bn_act(self.conv(x))


class DenseBnAct(_BnAct):
    """`Dense`, then `BatchNorm1d`, then an activation.

    Args:
        in_channels, out_channels, has_bias: As in `Dense`.
        weight_init, bias_init, has_bn, momentum, eps, activation, alpha, after_fake: As in `Conv2dBnAct`.

    Inputs: x (N, in_channels), floating point.
    Returns: (N, out_channels).

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.DenseBnAct(4, 2, activation="relu")(mixtrain.Tensor(np.ones((3, 4), np.float32))).shape)
        (3, 2)
    """

    def __init__(
        self, in_channels: int, out_channels: int, weight_init: InitializerLike | None = "normal",
        bias_init: InitializerLike | None = "zeros", has_bias: bool = True, has_bn: bool = False, momentum: float = 0.9,
        eps: float = 1e-5, activation: ActivationLike | None = None, alpha: float = 0.2, after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self._set_bn_act(BatchNorm1d(out_channels, eps, momentum), has_bn, activation, alpha, after_fake)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the dense layer, the normalization and the activation to `x`."""
        return self._apply_bn_act(self.dense(x))
