"""The `RunState` of a train cell, and checks before it is loaded into one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixtrain import backend
from mixtrain.errors import CheckpointError
from mixtrain.loss_scale.manager import LossScaleManager
from mixtrain.network.walk import is_cell, is_layer, is_optimizer_cell, tree_of
from mixtrain.precision.apply import applied_plan
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.seed import seed_state
from mixtrain.serialization.checkpoint import RunState
from mixtrain.serialization.manager_state import manager_facts
from mixtrain.serialization.names import states_by_name
from mixtrain.serialization.values import stored
from mixtrain.step.train_step import TrainStep, held_step
from mixtrain.typing import Network, Tensor


def trains(network: Network) -> bool:
    """Whether a network is a train cell: a cell that contains an optimizer."""
    if not is_cell(network) or is_optimizer_cell(network):
        return False
    return bool(_steps_in(network)) or any(is_optimizer_cell(cell) for _, cell in network.cells_and_names())


def take_run_state(network: Network, position: Mapping[str, int]) -> RunState:
    """Return the state of a network: random states, and for a train cell the seed, the plan and loss-scale counts."""
    arrays = {name: stored(variable) for name, variable in states_by_name(network).items()}
    facts: dict[str, Any] = dict(position)
    if trains(network):
        plan = plan_in_force(network)
        facts |= {"seed": seed_state(), "plan": None if plan is None else plan_facts(plan)}
        facts |= {"manager": manager_facts(manager) for manager in host_managers(network)}
    return RunState(arrays, facts)


def host_managers(network: Network) -> list[LossScaleManager]:
    """Return the loss-scale managers that are updated from Python: that of a train cell, or none."""
    managers = [step.host_manager for step in _steps_in(network)]
    return [manager for manager in managers if manager is not None][:1]


def _steps_in(network: Network) -> list[TrainStep]:
    steps = [held_step(cell) for _, cell in network.cells_and_names()]
    return [step for step in steps if step is not None]


def check_loss_scale(network: Network, values: Sequence[tuple[Tensor, Tensor]], file: str) -> None:
    """Check loss scales and their counts, in pairs of (variable, new value), before they are assigned."""
    if not is_cell(network):
        return
    new_values = {id(variable): value for variable, value in values}
    for step in _steps_in(network):
        if step.scale is not None:
            scale, counts = new_values.get(id(step.scale.variable)), new_values.get(id(step.state.counts))
            for name, value, expected, is_valid in (
                ("scale_sense", scale, "a finite number above 0", lambda array: np.isfinite(array) & (array > 0)),
                ("loss_scale.counts", counts, "at least 0", lambda array: array >= 0),
            ):
                array = None if value is None else backend.to_numpy(value)
                if array is not None and not is_valid(array).all():
                    raise CheckpointError(
                        f"load_param_into_net: expected {name} of {file!r} to be {expected}; got {array.tolist()}. "
                        "Write a file of save_checkpoint or ModelCheckpoint, as it was written."
                    )


def warn_of_another_plan(network: Network, facts: Mapping[str, Any]) -> None:
    """Warn if the network has another precision plan than when the checkpoint was written."""
    plan, saved = plan_in_force(network), facts.get("plan")
    if plan is None or saved is None or (plan.level, plan.half.name) == (saved["level"], saved["half"]):
        return
    warnings.warn(
        f"load_param_into_net: the checkpoint was written at level {saved['level']} (half is {saved['half']}), this "
        f"network trains at {plan.level} (half is {plan.half.name}). Parameters are kept in float32 at every level and "
        "are loaded; later steps round differently from earlier ones.",
        stacklevel=3,
    )


def plan_in_force(network: Network) -> PrecisionPlan | None:
    """Return the precision plan applied to a network or to a layer in it."""
    if not is_layer(network):
        return None
    for node in tree_of(network).walk():
        applied = applied_plan(node.layer)
        if applied is not None:
            return applied.plan
    return None


def plan_facts(plan: PrecisionPlan) -> dict[str, Any]:
    """Return a plan as plain values: its level, its half dtype, and each layer's rule and dtypes."""
    rows = [
        [row.path, row.layer, row.rule, *(
            "" if dtype is None else dtype.name for dtype in (row.compute_dtype, row.parameter_dtype, row.output_dtype)
        )]
        for row in plan.rows
    ]
    return {"level": plan.level, "half": plan.half.name, "reason": plan.reason, "rows": rows}
