"""Parameters kept in half, with float32 copies that the optimizer updates: a rule of storage, undone as it was made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.dtype import HALF_DTYPES, DType, as_dtype, float32
from mixtrain.network.walk import Node, is_cell, tree_of
from mixtrain.precision.plan import PrecisionPlan

_ATTRIBUTE: Final = "_mixtrain_master"
_SCRATCH: Final = "_mixtrain_scratch"


def keep_in_half(network: Any, plan: PrecisionPlan, *, masters: bool) -> list[keras.Variable]:
    """Keep a network's parameters in half from now on.

    Kept so are the trainable float32 parameters of layers that compute in half. Those of other layers (normalization),
    frozen ones and moving statistics stay as they are. Every holder of a variable goes on holding it.

    Args:
        network: A Cell or built Keras layer.
        plan: Its plan, which says what computes in half.
        masters: Whether each has a float32 copy, which `updating_masters` shows and `master_value` reads.

    Returns:
        The parameters that are kept in half.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
        >>> kept = keep_in_half(net, mixtrain.amp.plan_precision(net, "O2"), masters=True)
        >>> with updating_masters(kept):
        ...     done = net.weight.set_data([[1.0, 1.0001]])
        >>> net.weight.asnumpy().tolist(), master_value(net.weight).numpy().tolist()
        ([[1.0, 1.0]], [[1.0, 1.000100016593933]])

    Source: Micikevicius et al., 2018, section 3.1; NVIDIA apex, `amp.initialize` with `master_weights`.
    """
    found = _to_keep(network, plan)
    for variable, half in found:
        full = backend.exchange_storage(variable, backend.storage_in(variable, half))
        if masters:
            object.__setattr__(variable, _ATTRIBUTE, full)
    return [variable for variable, _ in found]


def compute_updates_in_float32(variables: Sequence[Any]) -> None:
    """Let `updating_masters` show in float32 those too that are kept in half without a copy; their value stays rounded.

    An optimizer that computes in its variables' format needs it: 0.999, Adam's second beta, is 1 in bfloat16.
    """
    for variable in variables:
        if as_dtype(getattr(variable, "stored_dtype", variable.dtype)) in HALF_DTYPES and not has_master(variable):
            object.__setattr__(variable, _SCRATCH, backend.storage_in(variable, float32))


@contextlib.contextmanager
def updating_masters(variables: Sequence[Any]) -> Iterator[None]:
    """Do `masters_shown`; then what is kept in half is set to the cast of the float32 copies."""
    rounded = [variable for variable in variables if hasattr(variable, _SCRATCH)]
    values = [backend.snapshot(variable) for variable in rounded]
    with masters_shown(variables), _shown(rounded, _SCRATCH):
        for variable, value in zip(rounded, values, strict=True):
            variable.assign(keras.ops.cast(value, float32))
        yield
    refresh_from_masters(variables)
    for variable in rounded:
        variable.assign(backend.read_storage(getattr(variable, _SCRATCH)))


def has_master(variable: Any) -> bool:
    """Whether a parameter is kept in half with a float32 copy."""
    return hasattr(variable, _ATTRIBUTE)


def master_value(variable: Any) -> Any:
    """Return the value that an optimizer updates, a tensor: that of the float32 copy where there is one."""
    if has_master(variable):
        return backend.read_storage(getattr(variable, _ATTRIBUTE))
    return backend.snapshot(variable)


def masters_shown(variables: Sequence[Any]) -> contextlib.AbstractContextManager[None]:
    """Let those of some variables that have float32 copies keep their values in these until the end."""
    return _shown([variable for variable in variables if has_master(variable)], _ATTRIBUTE)


@contextlib.contextmanager
def _shown(variables: Sequence[Any], attribute: str) -> Iterator[None]:
    """Let variables keep their values until the end in the storage that an attribute of theirs holds."""
    kept = [(variable, backend.exchange_storage(variable, getattr(variable, attribute))) for variable in variables]
    try:
        yield
    finally:
        for variable, half in kept:
            backend.exchange_storage(variable, half)


def refresh_from_masters(variables: Sequence[Any]) -> None:
    """Set those of some variables that have float32 copies to the cast of these."""
    for variable in variables:
        if has_master(variable):
            variable.assign(backend.read_storage(getattr(variable, _ATTRIBUTE)))


def _to_keep(network: Any, plan: PrecisionPlan) -> list[tuple[keras.Variable, DType]]:
    """Return the parameters to keep in half, each with its format; one that a float32 layer holds too is none."""
    formats = {id(row.target): row.compute_dtype for row in plan.rows}
    found: dict[int, tuple[keras.Variable, set[DType]]] = {}
    for node in tree_of(network).walk():
        for variable in _own(node):
            found.setdefault(id(variable), (variable, set()))[1].add(formats.get(id(node.layer), float32))
    return [
        (variable, computed.pop()) for variable, computed in found.values()
        if len(computed) == 1 and float32 not in computed and variable.trainable
        and as_dtype(getattr(variable, "stored_dtype", variable.dtype)) == float32
    ]


def _own(node: Node) -> list[keras.Variable]:
    """Return the variables of a layer that are in no layer below it."""
    if is_cell(node.layer):
        return list(node.layer.own_parameters().values())
    below = {id(variable) for child in node.children for variable in _all(child.layer)}
    return [variable for variable in _all(node.layer) if id(variable) not in below]


def _all(layer: Any) -> list[keras.Variable]:
    return list(layer.get_parameters()) if is_cell(layer) else list(getattr(layer, "weights", ()))
