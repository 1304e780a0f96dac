"""Carrying a plan out: the only change made to a network, and its undoing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import keras

from mixtrain.common.changes import precision_changed
from mixtrain.dtype import float32
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.walk import is_cell
from mixtrain.precision.cast import CastRule, cast_floats
from mixtrain.precision.formats import OWN_POLICY
from mixtrain.precision.fused_norm import fused
from mixtrain.precision.own_config import keep_own_config
from mixtrain.precision.lean_norm import is_lean, lean
from mixtrain.precision.half_products import by_engine
from mixtrain.precision.plan import PlanRow, PrecisionPlan, note_rule

_ATTRIBUTE: Final = "_mixtrain_applied"


class AppliedPlan:
    """A plan in force on a network; `undo` takes it back.

    Attributes:
        network: The network.
        plan: The plan.
    """

    def __init__(self, network: Any, plan: PrecisionPlan) -> None:
        self.network = network
        self.plan = plan
        self._undo = contextlib.ExitStack()
        self._put_in_force()

    def _put_in_force(self) -> None:
        try:
            for row in self.plan.rows:
                if row.cast is not None:
                    self._undo.callback(_apply_row(row, row.cast))
                    self._undo.callback(note_rule(row))
                if row.fused:
                    self._undo.callback(_fuse(row.target))
                if is_lean(row.target):
                    self._undo.callback(_make_lean(row))
        except BaseException:
            self._undo.close()
            raise

    def undo(self) -> None:
        """Put every layer back as it was; a second call does nothing."""
        self._undo.close()
        precision_changed()
        if applied_plan(self.network) is self:
            object.__delattr__(self.network, _ATTRIBUTE)


def apply_plan(network: Any, plan: PrecisionPlan) -> AppliedPlan:
    """Make a network compute as a plan says, after undoing the plan that was in force on it.

    Args:
        network: The network that `plan` was made for.
        plan: From `plan_precision`.

    Returns:
        The applied plan, whose `undo` takes it back.

    Raises:
        ValueError: The plan was made for another network.

    Example:
        >>> import keras, mixtrain
        >>> network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
        >>> applied = apply_plan(network, mixtrain.amp.plan_precision(network, "O2"))
        >>> network.layers[0].compute_dtype
        'float16'
        >>> applied.undo()
        >>> network.layers[0].compute_dtype
        'float32'
    """
    if not plan.rows or plan.rows[0].target is not network:
        raise ValueError(
            "apply_plan: the plan must be one of this network; got a plan of another. "
            "Write apply_plan(network, plan_precision(network, ...))."
        )
    before = applied_plan(network)
    if before is not None:
        before.undo()
    applied = AppliedPlan(network, plan)
    object.__setattr__(network, _ATTRIBUTE, applied)
    precision_changed()
    return applied


def applied_plan(network: Any) -> AppliedPlan | None:
    """Return the plan in force on a network, or None."""
    return vars(network).get(_ATTRIBUTE)


@contextlib.contextmanager
def under_plan(network: Any, plan: PrecisionPlan) -> Iterator[None]:
    """Let a network compute as a plan says until the end; then all is as it was, and nothing is compiled anew.

    Args:
        network: The network that `plan` was made for.
        plan: From `plan_precision`.
    """
    before = applied_plan(network)
    if before is not None:
        before._undo.close()
    try:
        with AppliedPlan(network, plan)._undo:
            yield
    finally:
        if before is not None:
            before._put_in_force()


def _apply_row(row: PlanRow, cast: CastRule) -> Callable[[], None]:
    """Put one row in force; return what undoes it."""
    if is_cell(row.target):
        return _apply_to_cell(row.target, cast)
    if isinstance(row.target, keras.Layer):
        return _apply_to_layer(row, cast)
    return interpose(row.target, lambda forward: _casting(forward, cast))


def _apply_to_cell(cell: Any, cast: CastRule) -> Callable[[], None]:
    before = cell._planned_cast
    object.__setattr__(cell, "_planned_cast", cast)
    return lambda: object.__setattr__(cell, "_planned_cast", before)


def _apply_to_layer(row: PlanRow, cast: CastRule) -> Callable[[], None]:
    layer, before = row.target, row.target.dtype_policy
    object.__setattr__(layer, OWN_POLICY, before)
    forget_config = keep_own_config(layer, before)
    # Batch normalisation takes half as it comes, and computes in float32 by itself.
    reads = row.output_dtype if row.fused else row.compute_dtype
    layer.dtype_policy = "float32" if reads == float32 else f"mixed_{reads}"
    product = None if reads == float32 else by_engine(layer)
    restore = None
    if cast.outputs is not None and cast.outputs != reads:
        outputs = CastRule(outputs=cast.outputs)
        restore = interpose(layer, lambda forward: _casting(forward, outputs))

    def undo() -> None:
        for put_back in (restore, product):
            if put_back is not None:
                put_back()
        layer.dtype_policy = before
        forget_config()
        object.__delattr__(layer, OWN_POLICY)

    return undo


def _fuse(layer: Any) -> Callable[[], None]:
    return interpose(layer, lambda forward: fused(layer, forward))


def _make_lean(row: PlanRow) -> Callable[[], None]:
    return interpose(row.target, lambda forward: lean(row.target, forward, row.output_dtype))


def _casting(forward: Forward, cast: CastRule) -> Forward:
    """Return `forward` with its float inputs and outputs cast."""

    def call(*args: Any, **kwargs: Any) -> Any:
        outputs = forward(*cast_floats(args, cast.inputs), **cast_floats(kwargs, cast.inputs))
        return cast_floats(outputs, cast.outputs)

    return call
