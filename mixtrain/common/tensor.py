"""`Tensor`: the name under which the engine's own tensors are made and recognised."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from mixtrain import checks, engine
from mixtrain.common.initializer import Initializer
from mixtrain.dtype import as_dtype, float32


class _TensorType(type):
    """Makes ``isinstance(x, Tensor)`` hold for the engine's tensors and for variables."""

    def __instancecheck__(cls, value: Any) -> bool:
        return engine.is_tensor(value) or isinstance(value, keras.Variable)


class Tensor(metaclass=_TensorType):
    """Make a tensor of the engine; tensors have no class of mixtrain's own.

    Args:
        input_data: A number, list, NumPy array or tensor.
        dtype: Its number format; without it, that of `input_data` (Python floats give float32).
        shape: Shape, where `init` makes the values.
        init: An `Initializer` that makes the values.

    Returns:
        The engine's tensor.

    Raises:
        TypeError: `dtype` is no number format, or `init` no Initializer.
        ValueError: Neither `input_data` nor `init` with `shape` was given.

    Example:
        >>> import mixtrain
        >>> x = mixtrain.Tensor([1.0, 2.0], mixtrain.float16)
        >>> isinstance(x, mixtrain.Tensor), x.dtype == mixtrain.float16
        (True, True)

    Source: MindSpore, `mindspore.Tensor`.
    """

    def __new__(
        cls, input_data: Any = None, dtype: Any = None, shape: Any = None, init: Initializer | None = None
    ) -> Any:
        wanted = None if dtype is None else as_dtype(dtype)
        if init is not None:
            checks.instance("Tensor", "init", init, Initializer, "init=mixtrain.common.initializer.Zero()")
            if shape is None:
                raise checks.fail_value("Tensor", "init needs a shape", shape, "shape=(2, 3)")
            shape = (shape,) if isinstance(shape, int) else tuple(shape)
            return engine.to_tensor(init.make(shape), wanted or float32)
        if input_data is None:
            raise checks.fail_value("Tensor", "input_data must be given", input_data, "Tensor(1.0)")
        if not isinstance(input_data, Tensor) and not isinstance(input_data, (np.ndarray, np.generic)):
            input_data = np.asarray(input_data)
            if input_data.dtype == np.float64:
                input_data = input_data.astype(np.float32)
        return engine.to_tensor(input_data, wanted)
