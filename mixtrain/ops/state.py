"""Assignment to Parameters, with its primitives."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, is_float
from mixtrain.ops.arithmetic import add, sub
from mixtrain.ops.inputs import tensor
from mixtrain.ops.primitive import primitives
from mixtrain.ops.promotion import promoted
from mixtrain.typing import Tensor, TensorLike, Variable


def assign(variable: Variable, value: TensorLike) -> Variable:
    """Assign `value`, cast and broadcast, to the Parameter `variable`; return it: ``ops.assign(weight, x)``."""
    return _written("ops.assign", variable, value)


def assign_add(variable: Variable, value: TensorLike) -> Tensor:
    """Add `value` to the Parameter `variable`; return its new value. Example: ``ops.assign_add(weight, 1.0)``."""
    _check_variable("ops.assign_add", variable)
    return _written("ops.assign_add", variable, add(backend.snapshot(variable), value))


def assign_sub(variable: Variable, value: TensorLike) -> Tensor:
    """Subtract `value` from the Parameter `variable`; return its new value: ``ops.assign_sub(weight, 1.0)``."""
    _check_variable("ops.assign_sub", variable)
    return _written("ops.assign_sub", variable, sub(backend.snapshot(variable), value))


def _check_variable(where: str, variable: Any) -> None:
    checks.instance(where, "variable", variable, keras.Variable, "mixtrain.Parameter(value)")


def _written(where: str, variable: Variable, value: TensorLike) -> Tensor:
    _check_variable(where, variable)
    new = tensor(where, value)
    if tuple(new.shape) != tuple(variable.shape):
        if new.shape != () and tuple(new.shape) != (1,):
            raise checks.fail_value(
                where, f"value must have shape {tuple(variable.shape)}", tuple(new.shape), "ops.reshape(value, shape)"
            )
        new = keras.ops.broadcast_to(new, variable.shape)
    # A Parameter is stored in its own dtype, even where the running cell reads it in another one.
    stored = getattr(variable, "stored_dtype", variable.dtype)
    if backend.is_tensor(value) and not is_float(stored) and promoted(new.dtype, stored) != as_dtype(stored):
        raise checks.fail_type(
            where, f"value must fit {as_dtype(stored).name} without loss", new, f"value.astype(mixtrain.{stored})"
        )
    variable.assign(keras.ops.cast(new, stored))
    return backend.snapshot(variable)


Assign, AssignAdd, AssignSub = primitives(Assign=assign, AssignAdd=assign_add, AssignSub=assign_sub)
