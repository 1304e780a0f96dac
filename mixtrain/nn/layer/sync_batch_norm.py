"""`SyncBatchNorm`: batch normalization with statistics over the batches of all processes."""

from __future__ import annotations

from typing import Any, ClassVar

import keras

from mixtrain import backend, checks, process_group
from mixtrain.common.initializer import InitializerLike
from mixtrain.dtype import float32
from mixtrain.nn.layer.batch_norm import BatchNorm
from mixtrain.ops.parameter_reads import parameters_read_as
from mixtrain.typing import DTypeLike, Tensor


class SyncBatchNorm(BatchNorm):
    """`BatchNorm1d` and `BatchNorm2d` with statistics over the global batch of all processes.

    In training, all processes must call it together. With a single process it is plain batch normalization.

    Args:
        num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, dtype: As in `BatchNorm2d`.
        process_groups: Lists of ranks that share statistics: None, 0 or one list of all ranks.

    Inputs: x (N, num_features) or (N, num_features, H, W), floating point.
    Returns: Same shape and dtype as `x`, computed as by `BatchNorm2d`.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.SyncBatchNorm(3)(mixtrain.Tensor(np.ones((2, 3, 4, 4), np.float32))).shape)
        (2, 3, 4, 4)
    """

    _ranks: ClassVar[tuple[int, ...]] = (2, 4)
    _axes: ClassVar[str] = "(N, C) or (N, C, H, W)"

    synchronized: ClassVar[bool] = True

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True,
        gamma_init: InitializerLike = "ones", beta_init: InitializerLike = "zeros",
        moving_mean_init: InitializerLike = "zeros", moving_var_init: InitializerLike = "ones",
        use_batch_statistics: bool | None = None, process_groups: Any = None, dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, dtype=dtype,
        )
        all_ranks = [list(range(process_group.current().size))]
        if process_groups is not None and process_groups != 0 and process_groups != all_ranks:
            raise checks.fail_value(
                self.cls_name, f"process_groups must be one group of all ranks, {all_ranks}", process_groups,
                "process_groups=None",
            )
        self.process_groups = process_groups

    def _normalize_channels_last(self, x: Tensor) -> Tensor:
        use_batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        if process_group.current().size == 1 or not use_batch:
            return super()._normalize_channels_last(x)
        ops = keras.ops
        axes = (0, 1, 2)
        gamma, beta = (ops.cast(parameter.value, float32) for parameter in (self.gamma, self.beta))
        x32 = ops.cast(x, float32)
        local_count = ops.cast(ops.prod(ops.shape(x)[:3]), float32)
        count, total = backend.all_reduce([local_count, ops.sum(x32, axes)])
        mean = total / count
        # Two passes: E[x²] - E[x]² would lose all digits to cancellation where the mean is large.
        centered = x32 - mean
        (squares,) = backend.all_reduce([ops.sum(ops.square(centered), axes)])
        variance = squares / count
        with parameters_read_as(None):
            unbiased = squares / ops.maximum(count - 1, 1)
            self.moving_mean.assign(self.moving_mean.value * self._decay + mean * self.momentum)
            self.moving_variance.assign(self.moving_variance.value * self._decay + unbiased * self.momentum)
        return ops.cast(centered * ops.rsqrt(variance + self.eps) * gamma + beta, x.dtype)
