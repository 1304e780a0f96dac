"""Storage of parameters in half precision, with or without float32 copies."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import keras

from mixtrain import backend, checks
from mixtrain.dtype import DType, float32
from mixtrain.network.marks import MASTER, REST, STORED_BY_PLAN
from mixtrain.network.walk import Node, is_cell, tree_of, variables_of
from mixtrain.precision.dtypes import own_storage_of
from mixtrain.precision.master_weights import (
    COPIES,
    LOW_PRECISION_UPDATES,
    LowPrecisionUpdate,
    full_value,
    has_master,
    stored_in_half,
)
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.trace_version import network_changed
from mixtrain.typing import Network, Variable

_UPDATED = {
    COPIES: "have float32 copies, which are updated", "stochastic": "are updated with stochastic rounding",
    "compensated": "are updated with compensated summation", "nearest": "are updated with rounding to nearest",
}


@dataclasses.dataclass(frozen=True)
class HalfStorage:
    """How a plan stores the parameters of layers that compute in half, while it is in force.

    Attributes:
        masters: Whether they have float32 copies; None to leave them in float32.
        update: How updates without a copy are rounded; None for stochastic rounding, and for layers of the user's own
            dtype as their library does it.
    """

    masters: bool | None = None
    update: LowPrecisionUpdate | None = None

    @classmethod
    def checked(cls, where: str, masters: bool | None, update: LowPrecisionUpdate | None) -> HalfStorage:
        """Check the arguments of a user's and return them."""
        if masters is not None:
            checks.boolean(where, "master_weights", masters)
        if update is not None:
            checks.one_of(where, "low_precision_update", update, LOW_PRECISION_UPDATES)
        return cls(masters, update)

    def planned(self, network: Network, plan: PrecisionPlan) -> PrecisionPlan:
        """Return a plan with the dtypes in which parameters will be stored, and how they are updated."""
        parameters = [] if self.masters is None else _half_parameters(network, plan)
        mirrored = [variable.path for variable, _ in parameters if backend.is_mirrored(variable)]
        if mirrored:
            raise checks.fail_value(
                "Model", "weights that are stored in half must not be mirrored by a strategy of tf.distribute",
                checks.join_names(mirrored), "mixtrain.distribution.data_parallel() without a strategy",
            )
        stored = {id(each): half for each, half in parameters}
        rows = tuple(
            dataclasses.replace(row, parameter_dtype=stored[id(first)]) if id(first) in stored else row
            for row in plan.rows for first in [next(iter(variables_of(row.target)), None)]
        )
        own = [each for each in variables_of(network) if each.trainable and stored_in_half(each)]
        own = [each for each in own if not STORED_BY_PLAN.of(each) and not has_master(each)]
        updates = dict.fromkeys([*([self._of_plan] if stored else []), *([self.update or "nearest"] if own else [])])
        halves = dict.fromkeys(half.name for half in [*stored.values(), *map(own_storage_of, own)])
        sentences = tuple(f"weights in {' and '.join(halves)} {_UPDATED[update]}" for update in updates)
        return dataclasses.replace(plan, rows=rows, notes=sentences)

    @property
    def _of_plan(self) -> str:
        return COPIES if self.masters else self.update or "stochastic"

    def store(self, network: Network, plan: PrecisionPlan) -> list[keras.Variable]:
        """Store parameters as planned, and return those that are stored in half now."""
        if self.masters is None:
            return []
        with backend.eager_scope():
            stored = keep_in_half(network, plan, masters=self.masters)
        for variable in stored:
            STORED_BY_PLAN.put(variable, self._of_plan)
        network_changed(network)
        return stored


def keep_in_half(network: Network, plan: PrecisionPlan, *, masters: bool) -> list[keras.Variable]:
    """Store the parameters of a network in half precision from now on, and return them.

    This applies to the trainable float32 parameters of layers that compute in half. Parameters of other layers, such as
    normalization, frozen parameters and moving statistics stay as they are. The variable objects stay the same. With
    `masters` each has a float32 copy, for `updating` and `full_value`.

    Source: Micikevicius et al., 2018, section 3.1; NVIDIA apex, `amp.initialize` with `master_weights`.
    """
    parameters = [(each, half) for each, half in _half_parameters(network, plan) if not stored_in_half(each)]
    for variable, half in parameters:
        full = backend.exchange_storage(variable, backend.storage_in(variable, half))
        if masters:
            MASTER.put(variable, full)
    return [variable for variable, _ in parameters]


def keep_in_float32(network: Network, parameters: Sequence[Variable]) -> None:
    """Undo `keep_in_half` for parameters, whose values are those of the copies, or have the rests of roundings."""
    with backend.eager_scope():
        for variable in parameters:
            value, full = full_value(variable), MASTER.of(variable)
            backend.exchange_storage(variable, backend.storage_in(variable, float32) if full is None else full)
            variable.assign(value)
            for mark in (MASTER, REST, STORED_BY_PLAN):
                mark.remove(variable)
    network_changed(network)


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
        and own_storage_of(variable) == float32 and not backend.takes_next_value(variable)
    ]


def _own_variables(node: Node) -> Sequence[keras.Variable]:
    """Return the variables of a layer that belong to none of its sublayers."""
    if is_cell(node.layer):
        return list(node.layer.own_parameters().values())
    below = {id(variable) for child in node.children for variable in variables_of(child.layer)}
    return [variable for variable in variables_of(node.layer) if id(variable) not in below]
