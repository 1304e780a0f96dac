"""TypeCast: values cast to another dtype."""

from __future__ import annotations

import keras

from mixtrain import checks
from mixtrain.dataset.transforms.operation import BlockOperation
from mixtrain.dtype import as_dtype
from mixtrain.typing import DTypeLike, Tensor


class TypeCast(BlockOperation):
    """The values cast to `data_type`, or `output_type` (MindSpore's earlier name for it), as by NumPy's `astype`.

    Example:
        >>> import numpy as np
        >>> import mixtrain
        >>> TypeCast(mixtrain.int32)(np.array([1.7, 2.0])).tolist()
        [1, 2]
    """

    def __init__(self, data_type: DTypeLike | None = None, *, output_type: DTypeLike | None = None) -> None:
        dtypes = [dtype for dtype in (data_type, output_type) if dtype is not None]
        if len(dtypes) != 1:
            raise checks.fail_type(
                "TypeCast", "one dtype is needed, as data_type", (data_type, output_type), "TypeCast(mixtrain.int32)"
            )
        self.data_type = as_dtype(dtypes[0])

    def apply(self, value: Tensor, rank: int) -> Tensor:
        return keras.ops.cast(value, self.data_type)
