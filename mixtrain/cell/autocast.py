"""Cells under an autocast: the cast rule of a cell, and the autocast of the operators inside it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any, Final

from mixtrain.autocast.state import Autocast, autocasting, float_dtypes, widest
from mixtrain.dtype import float32, float64
from mixtrain.network.marks import PLANNED_RULE, REQUEST
from mixtrain.ops.parameter_reads import parameters_read_as
from mixtrain.precision.cast import CastRule, cast_floats
from mixtrain.typing import Layer, Tree

_LIBRARY: Final = "mixtrain.nn."
_UNCHANGED: Final = CastRule()


def run_under(rule: CastRule, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
    """Run the forward function of a Cell with inputs, parameters and outputs cast according to a rule."""
    args, kwargs = cast_floats(args, rule.inputs), cast_floats(kwargs, rule.inputs)
    with parameters_read_as(rule.parameters):
        outputs = forward(*args, **kwargs)
    return cast_floats(outputs, rule.outputs)


def listed_name(kind: type, state: Autocast, owns: Callable[[type], bool]) -> str | None:
    """Return the name of the first base class of a library that is in the autocast lists; None if none is."""
    for base in kind.__mro__:
        if owns(base) and state.listed(base.__name__) is not None:
            return base.__name__
    return None


def rule_of_class(cell: type | Layer, state: Autocast) -> CastRule:
    """Return the cast rule of a cell without a rule of a plan or user, for float32 or half inputs."""
    if state.covering:
        return CastRule(inputs=state.dtype, parameters=state.dtype)
    name = listed_name(type(cell), state, _owns)
    kind = None if name is None else state.listed(name)
    if kind == "half":
        return CastRule(inputs=state.dtype, parameters=state.dtype)
    return CastRule(inputs=float32) if kind == "float32" else _UNCHANGED


def under_autocast(
    cell: Layer, state: Autocast, rule: CastRule, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[CastRule, contextlib.AbstractContextManager[None]]:
    """Return the cast rule of a cell under an autocast, and a context for the operators inside it.

    `cell`: The cell. `state`: The autocast in force. `rule`: The cell's current rule. `args`: Positional arguments of
    the call. `kwargs`: Keyword arguments of the call.
    """
    planned = PLANNED_RULE.of(cell)
    # Rules of a plan or the user come first; under a rule of the user no operator inside is autocast.
    if planned is not None or REQUEST.of(cell) is not None:
        by_user = planned is None or planned.by_user
        return rule, autocasting(None) if by_user or _is_leaf(cell) else contextlib.nullcontext()
    name = listed_name(type(cell), state, _owns)
    # The operators of a user's cell are autocast one by one.
    if name is None and not _is_leaf(cell):
        return rule, contextlib.nullcontext()
    dtypes = float_dtypes((args, kwargs), numpy_as_float32=True)
    if float64 in dtypes or (name is not None and _has_float64(cell)):
        return _UNCHANGED, autocasting(None)
    if rule.inputs is not None:
        if state.covering or rule.inputs == float32 or name is None:
            return rule, autocasting(state if state.covering else None)
        if state.is_recurrent(name):
            return rule, autocasting(dataclasses.replace(state, covering=True))
        return rule, contextlib.nullcontext()
    # Any other cell of `mixtrain.nn` returns the widest dtype of its inputs.
    return CastRule(outputs=widest(dtypes)) if dtypes else _UNCHANGED, autocasting(None)


def _is_leaf(cell: Layer) -> bool:
    """Whether a cell is one of `mixtrain.nn` without children, whose operators are not autocast one by one."""
    return _owns(type(cell)) and not cell.child_layers()


def _owns(kind: type) -> bool:
    """Whether a class is one of `mixtrain.nn`."""
    return kind.__module__.startswith(_LIBRARY)


def _has_float64(cell: Layer) -> bool:
    return any(
        getattr(parameter, "stored_dtype", None) == float64 for parameter in cell.own_parameters().values()
    )
