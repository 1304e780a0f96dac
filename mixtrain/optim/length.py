"""The L2 norm of a whole weight or gradient, as used by layer-wise learning rates."""

from __future__ import annotations

import keras

from mixtrain.typing import Tensor


def l2_norm(value: Tensor) -> Tensor:
    """Return the L2 norm over all elements of a tensor, a scalar.

    Example:
        >>> import mixtrain
        >>> float(l2_norm(mixtrain.Tensor([[3.0], [4.0]])))
        5.0
    """
    return keras.ops.sqrt(keras.ops.sum(keras.ops.square(value)))
