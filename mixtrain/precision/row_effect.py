"""Applying one row of a plan to its layer, and undoing it."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Hashable
from typing import Any, Final

import keras

from mixtrain.dtype import float32
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.marks import OWN_POLICY, PLANNED_RULE
from mixtrain.network.walk import is_cell
from mixtrain.precision.cast import CastRule, cast_floats
from mixtrain.precision.float8_layers import multiply_in_float8
from mixtrain.precision.half_errors import advising, runs_user_code, with_exact_indices
from mixtrain.precision.half_products import by_backend_products
from mixtrain.precision.norms import fused, is_lean, lean
from mixtrain.precision.plan import PlannedRule, PlanRow

Undo = Callable[[], object]
UNCHANGED: Final = None


def effect_of(row: PlanRow) -> Hashable:
    """Return a key for the computation that a row makes of its layer; `UNCHANGED` if it changes nothing."""
    if row.cast is None and row.float8 is None and not row.fused and not is_lean(row.target):
        return UNCHANGED
    return row.cast, row.compute_dtype, row.output_dtype, row.fused, row.by_user, row.float8


def apply_row(row: PlanRow, undo: list[Undo]) -> None:
    """Apply a row to its layer; `undo` receives what reverts it, last in, first out, also if this raises."""
    if row.float8 is not None:
        undo.append(multiply_in_float8(row.target, row.histories))
    if row.cast is not None:
        _apply_cast(row, row.cast, undo)
        PLANNED_RULE.put(row.target, PlannedRule(row.rule, row.by_user))
        undo.append(functools.partial(PLANNED_RULE.remove, row.target))
    if row.fused:
        undo.append(interpose(row.target, lambda forward: fused(row.target, forward)))
    if is_lean(row.target):
        undo.append(interpose(row.target, lambda forward: lean(row.target, forward, row.output_dtype)))


def _apply_cast(row: PlanRow, cast: CastRule, undo: list[Undo]) -> None:
    if is_cell(row.target):
        object.__setattr__(row.target, "_planned_cast", cast)
        # Not a closure: a deep copy of the cell has to copy this with its reference to the cell.
        undo.append(functools.partial(object.__setattr__, row.target, "_planned_cast", None))
    elif isinstance(row.target, keras.Layer):
        _apply_to_layer(row, cast, undo)
    else:
        undo.append(interpose(row.target, lambda forward: _casting(forward, cast)))


def _apply_to_layer(row: PlanRow, cast: CastRule, undo: list[Undo]) -> None:
    """Apply a row to a Keras layer: by its dtype policy, which casts inputs and reads variables in that dtype."""
    layer, previous = row.target, row.target.dtype_policy
    OWN_POLICY.put(layer, previous)
    undo.append(lambda: OWN_POLICY.remove(layer))
    undo.append(interpose(layer, lambda own: _with_own_policy(own, previous), method="get_config"))
    # A fused batch normalization takes half inputs and computes in float32 by itself.
    input_dtype = row.output_dtype if row.fused else row.compute_dtype
    policy = "float32" if input_dtype == float32 else f"mixed_{input_dtype.name}"
    if previous.name != policy:
        undo.append(lambda: setattr(layer, "dtype_policy", previous))
        layer.dtype_policy = policy
    undo_products = None if input_dtype == float32 else by_backend_products(layer)
    if undo_products is not None:
        undo.append(undo_products)
    if input_dtype != float32 and runs_user_code(layer):
        undo.append(interpose(layer, lambda forward: advising(forward, row)))
    if isinstance(layer, keras.layers.Embedding):
        undo.append(interpose(layer, lambda forward: with_exact_indices(forward, row)))
    if cast.outputs is not None:
        outputs = CastRule(outputs=cast.outputs)
        undo.append(interpose(layer, lambda forward: _casting(forward, outputs)))
    if cast.step_outputs is not None:
        step_outputs = CastRule(outputs=cast.step_outputs)
        undo.append(interpose(layer, lambda forward: _casting_for_step(forward, step_outputs)))


def _with_own_policy(own: Forward, policy: keras.dtype_policies.DTypePolicy) -> Forward:
    """Let `get_config`, and so Keras's save and clone, return the user's own policy, so that Keras saves no plan."""

    # Keras marks its default `get_config` by an attribute of the function, which `wraps` copies.
    @functools.wraps(own)
    def get_config() -> dict[str, Any]:
        config: dict[str, Any] = own()
        return config | {"dtype": keras.dtype_policies.serialize(policy)} if "dtype" in config else config

    return get_config


def _casting(forward: Forward, cast: CastRule) -> Forward:
    """Return `forward` with its float inputs and outputs cast."""

    @functools.wraps(forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        outputs = forward(*cast_floats(args, cast.inputs), **cast_floats(kwargs, cast.inputs))
        return cast_floats(outputs, cast.outputs)

    return call


class _Calls(threading.local):
    """Whether this thread is inside the call of a layer whose outputs are cast for a train step."""

    inside = False


_calls: Final = _Calls()


def _casting_for_step(forward: Forward, cast: CastRule) -> Forward:
    """Return `forward` with its float outputs cast, unless the call is inside that of another such layer."""

    @functools.wraps(forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _calls.inside:
            return forward(*args, **kwargs)
        _calls.inside = True
        try:
            outputs = forward(*args, **kwargs)
        finally:
            _calls.inside = False
        return cast_floats(outputs, cast.outputs)

    return call


def undo_row(undo: list[Undo]) -> None:
    """Call the functions that revert a row, last in, first out; all of them even if one raises."""
    with contextlib.ExitStack() as stack:
        for function in undo:
            stack.callback(function)
    undo.clear()
