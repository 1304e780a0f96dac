"""`SyncBatchNorm`: batch normalization over all devices, of which there is one."""

from __future__ import annotations

from typing import Any, ClassVar

from mixtrain import checks
from mixtrain.dtype import float32
from mixtrain.nn.layer.batch_norm import BatchNorm


class SyncBatchNorm(BatchNorm):
    """Normalize as `BatchNorm1d` and `BatchNorm2d` do: the one device's batch is the whole batch.

    Args:
        num_features: Channels of the input.
        eps: Added to the variance.
        momentum: Share of the moving statistics that a training step keeps.
        affine: Whether `gamma` and `beta` are learned.
        gamma_init: What `initializer` accepts: the scale.
        beta_init: Likewise: the shift.
        moving_mean_init: Likewise: the moving mean.
        moving_var_init: Likewise: the moving variance.
        use_batch_statistics: True: always those of the batch; False: always the moving ones; None: by the mode.
        process_groups: Lists of ranks that share statistics; on one device None, 0 or [[0]].
        dtype: Format that `gamma` and `beta` are stored in.

    Inputs:
        x (N, num_features) or (N, num_features, H, W), floating point.

    Returns:
        Shape and format of `x`, computed as by `BatchNorm2d`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, a group holds another rank than 0, or `x` does not fit.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.SyncBatchNorm(3)(mixtrain.Tensor(np.ones((2, 3, 4, 4), np.float32))).shape)
        (2, 3, 4, 4)

    Source: MindSpore, `mindspore.nn.SyncBatchNorm`.
    """

    _ranks: ClassVar[tuple[int, ...]] = (2, 4)
    _axes: ClassVar[str] = "(N, C) or (N, C, H, W)"

    synchronized: ClassVar[bool] = True

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        process_groups: Any = None,
        dtype: Any = float32,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, dtype=dtype,
        )
        if process_groups is not None and process_groups != 0 and process_groups != [[0]]:
            raise checks.fail_value(
                self.cls_name, "process_groups must name rank 0 alone, as there is one device", process_groups,
                "process_groups=None",
            )
        self.process_groups = process_groups
