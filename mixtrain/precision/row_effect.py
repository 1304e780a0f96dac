"""One row of a plan put in force on its layer, and taken back."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable
from typing import Any, Final

import keras

from mixtrain.dtype import float32
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.walk import is_cell
from mixtrain.precision.cast import CastRule, cast_floats
from mixtrain.precision.fused_norm import fused
from mixtrain.precision.half_products import by_backend_products
from mixtrain.precision.lean_norm import is_lean, lean
from mixtrain.precision.own_config import keep_own_config
from mixtrain.precision.own_policy import OWN_POLICY
from mixtrain.precision.plan import PlanRow, note_rule

Undo = Callable[[], object]
AS_IT_IS: Final = None


def effect_of(row: PlanRow) -> Hashable:
    """Return what a row makes of its layer: rows of the same effect are the same computation; `AS_IT_IS` for none."""
    if row.cast is None and not row.fused and not is_lean(row.target):
        return AS_IT_IS
    return row.cast, row.compute_dtype, row.output_dtype, row.fused, row.by_user


def put_row(row: PlanRow, done: list[Undo]) -> None:
    """Put a row in force.

    Args:
        row: The row.
        done: Is given what takes it back, to be called last in, first out; also where this raises.
    """
    if row.cast is not None:
        _apply_cast(row, row.cast, done)
        done.append(note_rule(row))
    if row.fused:
        done.append(interpose(row.target, lambda forward: fused(row.target, forward)))
    if is_lean(row.target):
        done.append(interpose(row.target, lambda forward: lean(row.target, forward, row.output_dtype)))


def _apply_cast(row: PlanRow, cast: CastRule, done: list[Undo]) -> None:
    if is_cell(row.target):
        object.__setattr__(row.target, "_planned_cast", cast)
        # No closure: a deep copy of the cell copies this with it.
        done.append(functools.partial(object.__setattr__, row.target, "_planned_cast", None))
    elif isinstance(row.target, keras.Layer):
        _apply_to_layer(row, cast, done)
    else:
        done.append(interpose(row.target, lambda forward: _casting(forward, cast)))


def _apply_to_layer(row: PlanRow, cast: CastRule, done: list[Undo]) -> None:
    layer, before = row.target, row.target.dtype_policy
    object.__setattr__(layer, OWN_POLICY, before)
    done.append(lambda: object.__delattr__(layer, OWN_POLICY))
    done.append(keep_own_config(layer, before))
    # Batch normalization takes half as it comes, and computes in float32 by itself.
    reads = row.output_dtype if row.fused else row.compute_dtype
    policy = "float32" if reads == float32 else f"mixed_{reads.name}"
    if before.name != policy:
        done.append(lambda: setattr(layer, "dtype_policy", before))
        layer.dtype_policy = policy
    product = None if reads == float32 else by_backend_products(layer)
    if product is not None:
        done.append(product)
    if cast.outputs is not None:
        outputs = CastRule(outputs=cast.outputs)
        done.append(interpose(layer, lambda forward: _casting(forward, outputs)))


def _casting(forward: Forward, cast: CastRule) -> Forward:
    """Return `forward` with its float inputs and outputs cast."""

    def call(*args: Any, **kwargs: Any) -> Any:
        outputs = forward(*cast_floats(args, cast.inputs), **cast_floats(kwargs, cast.inputs))
        return cast_floats(outputs, cast.outputs)

    return call


def take_back(done: list[Undo]) -> None:
    """Undo what `put_row` did, last in, first out, all of it even where one raises."""
    with contextlib.ExitStack() as stack:
        for undo in done:
            stack.callback(undo)
    done.clear()
