"""OneHot: labels as one-hot vectors."""

from __future__ import annotations

import keras

from mixtrain import checks, data_backend
from mixtrain.dataset.transforms.operation import BlockOperation
from mixtrain.typing import Tensor


class OneHot(BlockOperation):
    """One or several labels as vectors that are 1 at the label and 0 elsewhere.

    Args:
        num_classes: The length of a vector; labels are from 0 to `num_classes` - 1.
        smoothing_rate: The fraction of the 1 that is distributed evenly over all classes.

    Returns: Shape (num_classes,), or (n, num_classes) for n labels, in the labels' dtype; float64 with smoothing.

    Example:
        >>> import numpy as np
        >>> OneHot(3)(np.array(2)).tolist()
        [0, 0, 1]
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        self.num_classes = checks.integer("OneHot", "num_classes", num_classes, at_least=1, example=10)
        self.smoothing_rate = checks.number("OneHot", "smoothing_rate", smoothing_rate, at_least=0.0, at_most=1.0)

    def apply(self, value: Tensor, rank: int) -> Tensor:
        labels, dtype = value, keras.backend.standardize_dtype(value.dtype)
        data_backend.require(
            "int" in dtype,
            f"OneHot: expected labels of an integer dtype; got {dtype}. Write TypeCast(mixtrain.int32) before it.",
        )
        if rank == 2 and labels.shape[-1] == 1:
            labels, rank = labels[..., 0], 1
        data_backend.require(
            rank <= 1,
            "OneHot: expected one label or a vector of labels; got {} dimensions. Write a map that makes them one.",
            rank,
        )
        valid = keras.ops.all(keras.ops.logical_and(labels >= 0, keras.ops.cast(labels, "int64") < self.num_classes))
        data_backend.require(
            valid,
            "OneHot: expected labels from 0 to below {}, its num_classes; got some from {} to {}. Write a larger "
            "num_classes.",
            self.num_classes, keras.ops.min(labels), keras.ops.max(labels),
        )
        vectors = keras.ops.one_hot(keras.ops.cast(labels, "int32"), self.num_classes, dtype="float64")
        if not self.smoothing_rate:
            return keras.ops.cast(vectors, dtype)
        return vectors * (1.0 - self.smoothing_rate) + self.smoothing_rate / self.num_classes
