"""The plan of one Model: put in force on its network, again where another plan changed it, and undone at the end."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

from mixtrain.amp.train_network import planned
from mixtrain.precision.apply import AppliedPlan, applied_plan, apply_plan, undo_soon
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.precision.plan_inputs import PlanInputs
from mixtrain.trace_version import layer_changed


@dataclasses.dataclass(frozen=True)
class PrecisionOptions:
    """How a Model plans its network's precision."""

    amp_level: Any
    keep_batchnorm_fp32: bool | None
    cast_model_type: Any


class Lease:
    """What lives as long as a Model, or a cell that it has handed out; then the plan ends."""

    def with_cell(self, cell: Any, network: Any) -> Any:
        """Let a cell that was made around the network keep the plan; return the cell."""
        if cell is not network:
            object.__setattr__(cell, "_plan_lease", self)
        return cell


class PlanInForce:
    """A Model's plan and its network.

    Args:
        network: A Cell or Keras model.
        options: How its precision is planned.

    Attributes:
        plan: The plan of the last `enter`.
    """

    def __init__(self, network: Any, options: PrecisionOptions) -> None:
        self._network = network
        self._options = options
        self._applied: AppliedPlan | None = None
        self.plan = self._planned()
        self._inputs = PlanInputs(network)

    @property
    def inputs(self) -> PlanInputs:
        """What the plan was made from; another object after each change of the network."""
        self._look()
        return self._inputs

    def enter(self) -> None:
        """Put the plan in force, should another Model, or `to_float`, have changed the network or its layers."""
        self._look()
        self.hold()

    def _look(self) -> None:
        """Plan again where the network has changed; `to_float` calls made since the last time count."""
        if self._inputs.hold():
            return
        if self._inputs.keras_layers_changed():
            layer_changed(self._network)
        plan = self._planned()
        self._inputs = PlanInputs(self._network)
        if plan != self.plan:
            self.plan = plan

    def _planned(self) -> PrecisionPlan:
        asked = self._options
        return planned("Model", self._network, asked.amp_level, asked.keep_batchnorm_fp32, asked.cast_model_type)

    def hold(self) -> None:
        """Put the plan in force where another was put in force since, on the network or on layers that it shares."""
        current = applied_plan(self._network)
        if current is None or current.plan is not self.plan:
            self._applied = apply_plan(self._network, self.plan)
        elif not current.in_force:
            current.enforce()

    def lease(self) -> Lease:
        """Return a new lease, at whose end the plan is undone."""
        lease = Lease()
        weakref.finalize(lease, self.end).atexit = False
        return lease

    def end(self) -> None:
        """Undo the plan, unless it was in force before the Model was made or another one has taken its place."""
        current = applied_plan(self._network)
        if current is not None and self._applied is not None and current.plan is self._applied.plan:
            undo_soon(current)
