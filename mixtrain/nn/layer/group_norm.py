"""`GroupNorm`: group normalization, computed in float32."""

from __future__ import annotations

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.common.initializer import InitializerLike, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import as_dtype, float32, is_half
from mixtrain.nn.layer.inputs import check_rank, check_width, float_tensor
from mixtrain.ops import nhwc
from mixtrain.typing import DTypeLike, Tensor


class GroupNorm(Cell):
    """Split the channels into groups, normalize each group of each sample, then scale and shift each channel.

    Args:
        num_groups, num_channels: Number of groups, which must divide the channels of the input.
        eps, affine, gamma_init, beta_init: As in `BatchNorm2d`.
        dtype: Dtype of the parameters.

    Inputs: x (N, num_channels, ...), floating point, of 2 to 5 axes.
    Returns: Same shape and dtype as `x`, computed in float32.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.GroupNorm(2, 4)(mixtrain.Tensor(np.ones((1, 4, 3, 3), np.float32))).shape)
        (1, 4, 3, 3)

    Source: Wu and He, 2018; MindSpore, `mindspore.nn.GroupNorm`.
    """

    precision_family = "normalization"

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
        gamma_init: InitializerLike = "ones", beta_init: InitializerLike = "zeros", dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.num_groups = checks.integer(where, "num_groups", num_groups, at_least=1)
        self.num_channels = checks.integer(where, "num_channels", num_channels, at_least=1)
        if self.num_channels % self.num_groups:
            raise checks.fail_value(
                where, f"num_channels must be a multiple of num_groups={num_groups}", num_channels, "num_groups=1"
            )
        self.eps = checks.number(where, "eps", eps, above=0, example=1e-5)
        self.affine = checks.boolean(where, "affine", affine)
        shape = (self.num_channels,)
        self.gamma = Parameter(initializer(gamma_init, shape, dtype), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, shape, dtype), name="beta", requires_grad=affine)

    def construct(self, x: Tensor) -> Tensor:
        """Normalize `x`."""
        x = float_tensor(self, x)
        check_rank(self, x, (2, 3, 4, 5), "(N, C, ...)")
        check_width(self, x, 1, self.num_channels, noun="channels", argument="num_groups=..., num_channels")
        y, _, _ = normalize_groups(x, self.num_groups, self.gamma.value, self.beta.value, self.eps)
        return y

    def extend_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"


def normalize_groups(
    x: Tensor, groups: int, gamma: Tensor | None, beta: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize each group of channels of each sample of x (N, C, ...), in float32; `gamma` and `beta` are (C,).

    Returns: ``(y, mean, variance)``: `y` has the shape and dtype of `x`, the statistics are float32 (N, groups).
    """
    ops, dtype = keras.ops, as_dtype(x.dtype)
    last = nhwc.to_channels_last(x)
    # (N, H * W, groups, channels of a group): a group is normalized over axes 1 and 3.
    grouped = ops.reshape(last, (ops.shape(last)[0], -1, groups, x.shape[1] // groups))
    scale, shift = (
        ops.reshape(ops.cast(parameter, float32), (groups, x.shape[1] // groups)) for parameter in (gamma, beta)
    )
    if not is_half(dtype):
        grouped = ops.cast(grouped, float32)
    y, mean, variance = backend.normalize_axes(grouped, scale, shift, axes=(1, 3), epsilon=eps)
    y = nhwc.from_channels_last(ops.reshape(ops.cast(y, dtype), ops.shape(last)))
    return y, mean[:, 0, :, 0], variance[:, 0, :, 0]
