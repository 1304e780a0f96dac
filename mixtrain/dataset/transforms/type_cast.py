"""TypeCast: the same values in another dtype."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks
from mixtrain.dataset.transforms.operation import Seed, TensorOperation
from mixtrain.dtype import as_dtype


class TypeCast(TensorOperation):
    """The values in another dtype, as NumPy's `astype` converts them.

    Args:
        data_type: A mixtrain or NumPy dtype, or its name.
        output_type: The same under another name that MindSpore has had for it.

    Raises:
        TypeError: It is no dtype, or both are given, or none.

    Example:
        >>> import numpy as np
        >>> import mixtrain
        >>> TypeCast(mixtrain.int32)(np.array([1.7, 2.0])).tolist()
        [1, 2]

    Source: MindSpore, `mindspore.dataset.transforms.TypeCast`.
    """

    by_block = True

    def __init__(self, data_type: Any = None, *, output_type: Any = None) -> None:
        if (data_type is None) == (output_type is None):
            raise checks.fail_type(
                "TypeCast", "one dtype is needed, as data_type", (data_type, output_type), "TypeCast(mixtrain.int32)"
            )
        self.data_type = as_dtype(output_type if data_type is None else data_type)

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor."""
        return keras.ops.cast(value, self.data_type)

    def block(self, values: Any) -> Any:
        """Return the results for a block of rows."""
        return keras.ops.cast(values, self.data_type)
