"""The length of a weight or gradient as one vector, which layer-wise rates are made of."""

from __future__ import annotations

from typing import Any

import keras


def length(value: Any) -> Any:
    """Return the Euclidean length of a tensor of any shape, a scalar.

    Example:
        >>> import mixtrain
        >>> float(length(mixtrain.Tensor([[3.0], [4.0]])))
        5.0
    """
    return keras.ops.sqrt(keras.ops.sum(keras.ops.square(value)))
