"""`CastRule`: the casts around the call of one layer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import keras

from mixtrain import backend
from mixtrain.autocast.state import keep_mask
from mixtrain.boundary import UserTensor
from mixtrain.dtype import HALF_DTYPES, DType, float32, is_float
from mixtrain.typing import Tree


@dataclasses.dataclass(frozen=True)
class CastRule:
    """The dtypes to cast to when a layer is called; None for no cast.

    `inputs`: Dtype that floating-point inputs are cast to. `parameters`: Dtype in which floating-point parameters are
    read. `outputs`: Dtype that floating-point outputs are cast to. `step_outputs`: Dtype that they are cast to where a
    train step calls the layer, not another layer of the network.
    """

    inputs: DType | None = None
    parameters: DType | None = None
    outputs: DType | None = None
    step_outputs: DType | None = None


def cast_floats(values: Tree, dtype: DType | None) -> Tree:
    """Cast every floating-point tensor in a structure to `dtype`; other values, and all values for None, stay.

    A `mixtrain.Tensor` stays one, and a tensor keeps the mask that Keras's layers and losses read.
    """
    return values if dtype is None else _cast_where(values, dtype, is_float)


def widen_halves(values: Tree) -> Tree:
    """Cast the tensors in half precision of a structure to float32; float64 stays, as in Keras."""
    return _cast_where(values, float32, HALF_DTYPES.__contains__)


def _cast_where(values: Tree, dtype: DType, is_cast: Callable[[Any], bool]) -> Tree:
    """Cast the tensors of a structure whose dtype is such."""

    def cast(value: Any) -> Any:
        if backend.is_tensor(value) and value.dtype != dtype and is_cast(keras.backend.standardize_dtype(value.dtype)):
            cast_value = keep_mask(value, backend.cast_keeping_layout(value, dtype))
            return backend.public_tensor(cast_value) if isinstance(value, UserTensor) else cast_value
        return value

    return keras.tree.map_structure(cast, values)
