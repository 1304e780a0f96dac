"""Master weights: parameters stored in half precision, with float32 copies that the optimizer updates."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

import keras

from mixtrain import backend
from mixtrain.dtype import HALF_DTYPES, DType, as_dtype, float32
from mixtrain.network.walk import Node, is_cell, tree_of
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.typing import Layer, Network, Tensor, Variable

_ATTRIBUTE: Final = "_mixtrain_master"
_SCRATCH: Final = "_mixtrain_scratch"


def keep_in_half(network: Network, plan: PrecisionPlan, *, masters: bool) -> list[keras.Variable]:
    """Store the parameters of a network in half precision from now on, and return them.

    This applies to the trainable float32 parameters of layers that compute in half. Parameters of other layers, such as
    normalization, frozen parameters and moving statistics stay as they are. The variable objects stay the same. With
    `masters` each has a float32 copy, for `updating_masters` and `master_value`.

    Source: Micikevicius et al., 2018, section 3.1; NVIDIA apex, `amp.initialize` with `master_weights`.
    """
    parameters = _half_parameters(network, plan)
    for variable, half in parameters:
        full = backend.exchange_storage(variable, backend.storage_in(variable, half))
        if masters:
            object.__setattr__(variable, _ATTRIBUTE, full)
    return [variable for variable, _ in parameters]


def compute_updates_in_float32(variables: Sequence[Variable]) -> None:
    """Make `updating_masters` present half parameters without a master in float32 too; their value stays rounded.

    An optimizer that computes in the dtype of its variables needs this: 0.999, Adam's second beta, is 1 in bfloat16.
    """
    for variable in variables:
        if as_dtype(getattr(variable, "stored_dtype", variable.dtype)) in HALF_DTYPES and not has_master(variable):
            object.__setattr__(variable, _SCRATCH, backend.storage_in(variable, float32))


@contextlib.contextmanager
def updating_masters(variables: Sequence[Variable]) -> Iterator[None]:
    """Present masters as the values of variables, and set the half parameters to their cast at the end."""
    rounded = [variable for variable in variables if hasattr(variable, _SCRATCH)]
    values = [backend.snapshot(variable) for variable in rounded]
    with masters_shown(variables), _storage_swapped(rounded, _SCRATCH):
        for variable, value in zip(rounded, values, strict=True):
            variable.assign(keras.ops.cast(value, float32))
        yield
    refresh_from_masters(variables)
    for variable in rounded:
        variable.assign(backend.read_storage(getattr(variable, _SCRATCH)))


def has_master(variable: Variable) -> bool:
    """Whether a parameter is stored in half precision with a float32 copy."""
    return hasattr(variable, _ATTRIBUTE)


def master_value(variable: Variable) -> Tensor:
    """Return the value that an optimizer updates: that of the float32 copy if there is one."""
    if has_master(variable):
        return backend.read_storage(getattr(variable, _ATTRIBUTE))
    return backend.snapshot(variable)


def masters_shown(variables: Sequence[Variable]) -> contextlib.AbstractContextManager[None]:
    """Make those variables that have a float32 copy read and write the copy for the duration of a context."""
    return _storage_swapped([variable for variable in variables if has_master(variable)], _ATTRIBUTE)


@contextlib.contextmanager
def _storage_swapped(variables: Sequence[Variable], attribute: str) -> Iterator[None]:
    """Exchange the storage of variables for the one in an attribute of theirs, for the duration of a context."""
    swapped = [(variable, backend.exchange_storage(variable, getattr(variable, attribute))) for variable in variables]
    try:
        yield
    finally:
        for variable, storage in swapped:
            backend.exchange_storage(variable, storage)


def refresh_from_masters(variables: Sequence[Variable]) -> None:
    """Set those variables that have a float32 copy to the cast of it."""
    for variable in variables:
        if has_master(variable):
            variable.assign(backend.read_storage(getattr(variable, _ATTRIBUTE)))


def _half_parameters(network: Network, plan: PrecisionPlan) -> list[tuple[keras.Variable, DType]]:
    """Return the parameters to store in half precision, each with its dtype; not those that a float32 layer shares."""
    dtypes = {id(row.target): row.compute_dtype for row in plan.rows}
    users: dict[int, tuple[keras.Variable, set[DType]]] = {}
    for node in tree_of(network).walk():
        for variable in _own_variables(node):
            users.setdefault(id(variable), (variable, set()))[1].add(dtypes.get(id(node.layer), float32))
    return [
        (variable, used_in.pop()) for variable, used_in in users.values()
        if len(used_in) == 1 and float32 not in used_in and variable.trainable
        and as_dtype(getattr(variable, "stored_dtype", variable.dtype)) == float32
    ]


def _own_variables(node: Node) -> list[keras.Variable]:
    """Return the variables of a layer that belong to none of its sublayers."""
    if is_cell(node.layer):
        return list(node.layer.own_parameters().values())
    below = {id(variable) for child in node.children for variable in _all_variables(child.layer)}
    return [variable for variable in _all_variables(node.layer) if id(variable) not in below]


def _all_variables(layer: Layer) -> list[keras.Variable]:
    return list(layer.get_parameters()) if is_cell(layer) else list(getattr(layer, "weights", ()))
