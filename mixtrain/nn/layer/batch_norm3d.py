"""`BatchNorm3d`: batch normalization of volumes, computed in float32."""

from __future__ import annotations

import keras

from mixtrain.cell.cell import Cell
from mixtrain.common.initializer import InitializerLike
from mixtrain.dtype import float32
from mixtrain.nn.layer.batch_norm import BatchNorm2d
from mixtrain.nn.layer.inputs import check_rank, check_width, float_tensor
from mixtrain.typing import DTypeLike, Tensor


class BatchNorm3d(Cell):
    """Normalize each channel of volumes over the batch, depth, height and width, then scale and shift it.

    Args: num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
        use_batch_statistics, dtype: As in `BatchNorm2d`.
    Inputs: x (N, num_features, D, H, W), floating point.
    Returns: Same shape and dtype as `x`, computed by `bn2d`, the `BatchNorm2d` that holds the parameters.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.BatchNorm3d(3)(mixtrain.Tensor(np.ones((2, 3, 2, 2, 2), np.float32))).shape)
        (2, 3, 2, 2, 2)
    """

    precision_family = "normalization"

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True,
        gamma_init: InitializerLike = "ones", beta_init: InitializerLike = "zeros",
        moving_mean_init: InitializerLike = "zeros", moving_var_init: InitializerLike = "ones",
        use_batch_statistics: bool | None = None, dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        self.bn2d = BatchNorm2d(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, dtype=dtype,
        )

    def construct(self, x: Tensor) -> Tensor:
        """Normalize `x`, with depth and height merged into one axis."""
        x = float_tensor(self, x)
        check_rank(self, x, (5,), "(N, C, D, H, W)")
        check_width(self, x, 1, self.bn2d.num_features, noun="channels", argument="num_features")
        shape = keras.ops.shape(x)
        flat = keras.ops.reshape(x, (shape[0], shape[1], -1, shape[4]))
        return keras.ops.reshape(self.bn2d(flat), shape)
