"""One layer's cast rule, and a forward pass run under it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import keras

from mixtrain import backend
from mixtrain.autocast.casting import parameters_read_as
from mixtrain.autocast.state import keep_mask
from mixtrain.boundary import TensorLike
from mixtrain.dtype import DType, is_float


@dataclasses.dataclass(frozen=True)
class CastRule:
    """What is cast when a layer is called; None leaves as it is.

    Attributes:
        inputs: Format that float inputs are cast to.
        parameters: Format that float parameters are read in.
        outputs: Format that float outputs are cast to.
    """

    inputs: DType | None = None
    parameters: DType | None = None
    outputs: DType | None = None


def cast_floats(values: Any, dtype: DType | None) -> Any:
    """Cast every float tensor in a structure to `dtype`; other values, and all of them for None, pass unchanged.

    What a user's network sees as a Tensor stays one, and a tensor keeps the mask that Keras's layers and losses read.
    """
    if dtype is None:
        return values

    def cast(value: Any) -> Any:
        if backend.is_tensor(value) and value.dtype != dtype and is_float(value.dtype):
            cast_value = keep_mask(value, backend.cast_keeping_layout(value, dtype))
            return backend.public_tensor(cast_value) if isinstance(value, TensorLike) else cast_value
        return value

    return keras.tree.map_structure(cast, values)


def run_under(rule: CastRule, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a Cell's forward function with inputs, parameters and outputs cast as `rule` says."""
    args, kwargs = cast_floats(args, rule.inputs), cast_floats(kwargs, rule.inputs)
    with parameters_read_as(rule.parameters):
        outputs = forward(*args, **kwargs)
    return cast_floats(outputs, rule.outputs)
