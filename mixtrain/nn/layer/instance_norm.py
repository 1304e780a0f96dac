"""`InstanceNorm1d`, `InstanceNorm2d` and `InstanceNorm3d`: instance normalization, computed in float32."""

from __future__ import annotations

import math
from typing import ClassVar

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.common.initializer import InitializerLike, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import float32
from mixtrain.nn.layer.group_norm import normalize_groups
from mixtrain.nn.layer.inputs import check_rank, check_width, float_tensor
from mixtrain.ops.parameter_reads import parameters_read_as
from mixtrain.typing import DTypeLike, Tensor


class _InstanceNorm(Cell):
    """Base class of instance normalizations; a subclass defines the axes of the input."""

    precision_family = "normalization"
    _axes: ClassVar[str]

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True,
        gamma_init: InitializerLike = "ones", beta_init: InitializerLike = "zeros", dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.num_features = checks.integer(where, "num_features", num_features, at_least=1)
        self.eps = checks.number(where, "eps", eps, above=0, at_most=1, example=1e-5)
        self.momentum = checks.number(where, "momentum", momentum, at_least=0, at_most=1, example=0.1)
        checks.boolean(where, "affine", affine)
        shape = (self.num_features,)
        self.moving_mean = Parameter(initializer("zeros", shape), name="mean", requires_grad=False)
        self.moving_variance = Parameter(initializer("ones", shape), name="variance", requires_grad=False)
        self.gamma = Parameter(initializer(gamma_init, shape, dtype), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, shape, dtype), name="beta", requires_grad=affine)

    def construct(self, x: Tensor) -> Tensor:
        """Normalize `x` by its own statistics in every mode; in training also update the moving statistics."""
        x = float_tensor(self, x)
        check_rank(self, x, (self._axes.count(",") + 1,), self._axes)
        check_width(self, x, 1, self.num_features, noun="channels", argument="num_features")
        y, mean, variance = normalize_groups(x, self.num_features, self.gamma.value, self.beta.value, self.eps)
        if self.training:
            self._update_moving_statistics(x, mean, variance)
        return y

    def _update_moving_statistics(self, x: Tensor, mean: Tensor, variance: Tensor) -> None:
        sizes = keras.ops.shape(x)[2:]
        count = keras.ops.cast(math.prod(sizes), float32)
        unbiased = variance * count / keras.ops.maximum(count - 1.0, 1.0)
        with parameters_read_as(None):
            for moving, new in ((self.moving_mean, mean), (self.moving_variance, unbiased)):
                moving.assign(moving.value * (1.0 - self.momentum) + keras.ops.mean(new, 0) * self.momentum)

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, gamma={self.gamma}, "
            f"beta={self.beta}, moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalize each channel of each sequence separately, then scale and shift it.

    Args:
        num_features, eps, affine, gamma_init, beta_init, dtype: As in `BatchNorm2d`.
        momentum: Weight of new statistics in the moving statistics, which are recorded but not used.

    Inputs: x (N, num_features, L), floating point.
    Returns: Same shape and dtype as `x`, computed in float32.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.InstanceNorm1d(3)(mixtrain.Tensor(np.ones((2, 3, 4), np.float32))).shape)
        (2, 3, 4)

    Source: Ulyanov et al., 2016; MindSpore, `mindspore.nn.InstanceNorm1d`.
    """

    _axes: ClassVar[str] = "(N, C, L)"


class InstanceNorm2d(_InstanceNorm):
    """Normalize each channel of each image separately, then scale and shift it.

    Args: num_features, eps, momentum, affine, gamma_init, beta_init, dtype: As in `InstanceNorm1d`.

    Inputs: x (N, num_features, H, W), floating point.
    Returns: Same shape and dtype as `x`, computed in float32.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.InstanceNorm2d(3)(mixtrain.Tensor(np.ones((2, 3, 4, 4), np.float32))).shape)
        (2, 3, 4, 4)

    Source: Ulyanov et al., 2016; MindSpore, `mindspore.nn.InstanceNorm2d`.
    """

    _axes: ClassVar[str] = "(N, C, H, W)"


class InstanceNorm3d(_InstanceNorm):
    """Normalize each channel of each volume separately, then scale and shift it.

    Args: num_features, eps, momentum, affine, gamma_init, beta_init, dtype: As in `InstanceNorm1d`.

    Inputs: x (N, num_features, D, H, W), floating point.
    Returns: Same shape and dtype as `x`, computed in float32.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.InstanceNorm3d(3)(mixtrain.Tensor(np.ones((2, 3, 2, 2, 2), np.float32))).shape)
        (2, 3, 2, 2, 2)

    Source: Ulyanov et al., 2016; MindSpore, `mindspore.nn.InstanceNorm3d`.
    """

    _axes: ClassVar[str] = "(N, C, D, H, W)"
