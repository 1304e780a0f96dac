"""Assignment to Parameters and Tensors, with its primitives."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.boundary import is_any_tensor
from mixtrain.dtype import as_dtype, is_float
from mixtrain.ops.arithmetic import add, sub
from mixtrain.ops.inputs import tensor, tensor_dtype
from mixtrain.ops.primitive import primitives
from mixtrain.ops.promotion import promoted
from mixtrain.ops.writes import write
from mixtrain.typing import Tensor, TensorLike, Variable


def assign(variable: Variable, value: TensorLike) -> Variable:
    """Assign `value`, cast and broadcast, to the Parameter or Tensor `variable`; return it: ``ops.assign(w, x)``."""
    return _written("ops.assign", variable, value)


def assign_add(variable: Variable, value: TensorLike) -> Tensor:
    """Add `value` to the Parameter or Tensor `variable`; return its new value: ``ops.assign_add(weight, 1.0)``."""
    return _written("ops.assign_add", variable, add(_current("ops.assign_add", variable), value))


def assign_sub(variable: Variable, value: TensorLike) -> Tensor:
    """Subtract `value` from the Parameter or Tensor `variable`; return its new value: ``ops.assign_sub(w, 1.0)``."""
    return _written("ops.assign_sub", variable, sub(_current("ops.assign_sub", variable), value))


def _current(where: str, variable: Any) -> Tensor:
    if not is_any_tensor(variable):
        raise checks.fail_type(
            where, "variable must be a Parameter or a Tensor", variable, "mixtrain.Parameter(value)"
        )
    return backend.snapshot(variable) if isinstance(variable, keras.Variable) else variable


def _written(where: str, variable: Variable, value: TensorLike) -> Tensor:
    old, new = _current(where, variable), tensor(where, value)
    if tuple(new.shape) != tuple(old.shape):
        if new.shape != () and tuple(new.shape) != (1,):
            raise checks.fail_value(
                where, f"value must have shape {tuple(old.shape)}", tuple(new.shape), "ops.reshape(value, shape)"
            )
        new = keras.ops.broadcast_to(new, old.shape)
    stored = as_dtype(getattr(variable, "stored_dtype", tensor_dtype(old)))
    if backend.is_tensor(value) and not is_float(stored) and promoted(new.dtype, stored) != stored:
        raise checks.fail_type(
            where, f"value must fit {stored.name} without loss", new, f"value.astype(mixtrain.{stored})"
        )
    return write(variable, new)


Assign, AssignAdd, AssignSub = primitives(Assign=assign, AssignAdd=assign_add, AssignSub=assign_sub)
