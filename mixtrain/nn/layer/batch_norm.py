"""`BatchNorm1d` and `BatchNorm2d`: batch normalization, computed in float32."""

from __future__ import annotations

from typing import ClassVar

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.common.initializer import InitializerLike, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import as_dtype, float32, is_half
from mixtrain.nn.layer.inputs import check_rank, check_width, float_tensor
from mixtrain.ops import nhwc
from mixtrain.ops.parameter_reads import parameters_read_as
from mixtrain.typing import DTypeLike, Tensor


class BatchNorm(Cell):
    """Base class of batch normalizations: parameters, choice of statistics, and moving averages."""

    precision_family = "normalization"
    _ranks: ClassVar[tuple[int, ...]]
    _axes: ClassVar[str]

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True,
        gamma_init: InitializerLike = "ones", beta_init: InitializerLike = "zeros",
        moving_mean_init: InitializerLike = "zeros", moving_var_init: InitializerLike = "ones",
        use_batch_statistics: bool | None = None, data_format: str = "NCHW", dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.num_features = checks.integer(where, "num_features", num_features, at_least=1)
        self.eps = checks.number(where, "eps", eps, above=0, example=1e-5)
        self._decay = checks.number(where, "momentum", momentum, at_least=0, at_most=1, example=0.9)
        # As in MindSpore, the attribute is the weight of the new statistics, the argument that of the old ones.
        self.momentum = 1.0 - self._decay
        checks.boolean(where, "affine", affine)
        if use_batch_statistics is not None:
            checks.boolean(where, "use_batch_statistics", use_batch_statistics)
        self.use_batch_statistics = use_batch_statistics
        self.data_format = checks.one_of(where, "data_format", data_format, ("NCHW",))
        shape = (self.num_features,)
        self.moving_mean = Parameter(initializer(moving_mean_init, shape), name="mean", requires_grad=False)
        self.moving_variance = Parameter(initializer(moving_var_init, shape), name="variance", requires_grad=False)
        self.gamma = Parameter(initializer(gamma_init, shape, dtype), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, shape, dtype), name="beta", requires_grad=affine)

    def construct(self, x: Tensor) -> Tensor:
        """Normalize `x`; in training also update the moving statistics."""
        x = float_tensor(self, x)
        check_rank(self, x, self._ranks, self._axes)
        check_width(self, x, 1, self.num_features, noun="channels", argument="num_features")
        dtype = as_dtype(x.dtype)
        if dtype != float32 and not is_half(dtype):
            return keras.ops.cast(self._normalize(keras.ops.cast(x, float32)), dtype)
        return self._normalize(x)

    def _normalize(self, x: Tensor) -> Tensor:
        """Normalize a half or float32 tensor whose channels are on axis 1."""
        ops = keras.ops
        if len(x.shape) == 4:
            return nhwc.from_channels_last(self._normalize_channels_last(nhwc.to_channels_last(x)))
        if len(x.shape) == 2:
            return ops.squeeze(self._normalize_channels_last(x[:, None, None, :]), (1, 2))
        y = self._normalize_channels_last(ops.transpose(x, (0, 2, 1))[:, None])
        return ops.transpose(ops.squeeze(y, 1), (0, 2, 1))

    def _normalize_channels_last(self, x: Tensor) -> Tensor:
        """Normalize a tensor (N, H, W, C), half or float32."""
        gamma, beta = (keras.ops.cast(parameter.value, float32) for parameter in (self.gamma, self.beta))
        use_batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        # The moving statistics are read as float32 even if autocast reads parameters as half.
        with parameters_read_as(None):
            mean, variance = self.moving_mean.value, self.moving_variance.value
            y, batch_mean, batch_variance = backend.fused_batch_norm(
                x, gamma, beta, mean, variance, epsilon=self.eps, training=use_batch
            )
            if use_batch:
                self.moving_mean.assign(mean * self._decay + batch_mean * self.momentum)
                self.moving_variance.assign(variance * self._decay + batch_variance * self.momentum)
        return y

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self._decay}, gamma={self.gamma}, "
            f"beta={self.beta}, moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class BatchNorm2d(BatchNorm):
    """Normalize each channel of images over the batch, height and width, then scale and shift it.

    Args:
        num_features: Channels of the input.
        eps: Added to the variance.
        momentum: Fraction of the moving statistics that a training step keeps.
        affine: Whether `gamma` and `beta` are learned; both are applied either way.
        gamma_init, beta_init, moving_mean_init, moving_var_init: Initial values, anything that `initializer` accepts.
        use_batch_statistics: True: always use batch statistics; False: always use moving statistics, never updated;
            None: batch statistics in training, moving statistics otherwise.
        data_format: "NCHW", the only supported value.
        dtype: Dtype of `gamma` and `beta`; the statistics are float32.

    Inputs: x (N, num_features, H, W), floating point.

    Returns:
        Same shape and dtype as `x`. Arithmetic is float32. The batch variance divides by n to normalize, and by n - 1
        to update the moving variance.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.BatchNorm2d(3)(mixtrain.Tensor(np.ones((2, 3, 4, 4), np.float32))).shape)
        (2, 3, 4, 4)

    Source: Ioffe and Szegedy, 2015; MindSpore, `mindspore.nn.BatchNorm2d`.
    """

    _ranks: ClassVar[tuple[int, ...]] = (4,)
    _axes: ClassVar[str] = "(N, C, H, W)"


class BatchNorm1d(BatchNorm):
    """Normalize each channel of vectors or sequences over the batch, then scale and shift it.

    Args: num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
        use_batch_statistics, data_format, dtype: As in `BatchNorm2d`.

    Inputs: x (N, num_features) or (N, num_features, L), floating point.
    Returns: Same shape and dtype as `x`, computed as by `BatchNorm2d`.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.BatchNorm1d(3)(mixtrain.Tensor(np.ones((2, 3), np.float32))).shape)
        (2, 3)

    Source: Ioffe and Szegedy, 2015; MindSpore, `mindspore.nn.BatchNorm1d`.
    """

    _ranks: ClassVar[tuple[int, ...]] = (2, 3)
    _axes: ClassVar[str] = "(N, C) or (N, C, L)"
