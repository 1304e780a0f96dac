"""Parameters with simple values, and steps with given gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor


def parameter(name: str, *values: float, requires_grad: bool = True) -> Parameter:
    """Return a float32 parameter with these values."""
    return Parameter(np.array(values, np.float32), name, requires_grad)


def tensors(*values: Sequence[float]) -> tuple[Any, ...]:
    """Return a float32 tensor for each list of values."""
    return tuple(Tensor(np.array(value, np.float32)) for value in values)


def values(variable: Any) -> Any:
    """Return a variable's values as a list, nested as its shape is; a scalar as a number."""
    return np.asarray(variable.numpy()).tolist()
