"""`PlanInForce`: applies a Model's precision plan to its network, and undoes it when the Model is deleted."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Sequence
from typing import Any

from mixtrain import checks
from mixtrain.dtype import float32
from mixtrain.network.marks import DECIDED
from mixtrain.precision.apply import AppliedPlan, Lease, applied_plan, kept_plans, put_in_force, undo_soon
from mixtrain.precision.half_storage import HalfStorage
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.precision.plan_inputs import PlanInputs
from mixtrain.precision.plan_request import assuming_to_float
from mixtrain.precision.planned import planned
from mixtrain.precision.planner import plan_keeping
from mixtrain.trace_version import layer_changed
from mixtrain.typing import Layer, Network


@dataclasses.dataclass(frozen=True)
class PrecisionOptions:
    """How a Model plans its network's precision."""

    amp_level: Any
    keep_batchnorm_fp32: bool | None
    cast_model_type: Any
    storage: HalfStorage = HalfStorage()


class PlanInForce:
    """A Model's plan and its network.

    `network`: A Cell or Keras model. `options`: How its precision is planned.

    Attributes:
        plan: The plan of the last `apply`.
    """

    def __init__(self, network: Network, options: PrecisionOptions) -> None:
        self._network = network
        self._options = options
        self._applied: AppliedPlan | None = None
        self._kept: list[AppliedPlan] = []
        self.plan = self._make_plan()
        if options.storage.masters is not None:
            if self.plan.level not in ("O2", "O3"):
                raise checks.fail_value(
                    "Model", "master_weights needs level O2 or O3, at which weights may be stored in half",
                    self.plan.level, 'amp_level="O2", or it without master_weights',
                )
        self._inputs = PlanInputs(network)

    @property
    def inputs(self) -> PlanInputs:
        """The inputs that the plan was made from; a new object after each change of the network."""
        self._refresh()
        return self._inputs

    def apply(self) -> None:
        """Plan again if the network has changed, and apply the plan if another one is applied."""
        self._refresh()
        self.enforce()

    def _refresh(self) -> None:
        """Plan again if the network, a `to_float` or a plan that was kept in force has changed since the last time."""
        if self._inputs.unchanged() and not any(kept.undone for kept in self._kept):
            return
        if self._inputs.keras_layers_changed():
            layer_changed(self._network)
        plan = self._make_plan()
        self._inputs = PlanInputs(self._network)
        if plan != self.plan:  # An equal plan keeps its identity, by which compiled calls are cached.
            self.plan = plan

    def _make_plan(self) -> PrecisionPlan:
        current, plan = applied_plan(self._network), self._planned()
        self._kept = kept_plans(self._network)
        # The user's own plan of this network stays as it is, also when the Model ends.
        return current.plan if current is not None and current.lasting and current.plan == plan else plan

    def _planned(self) -> PrecisionPlan:
        options = self._options
        arguments = options.amp_level, options.keep_batchnorm_fp32, options.cast_model_type
        return options.storage.planned(self._network, planned("Model", self._network, *arguments))

    def keeping_float32(self, layers: Sequence[Layer]) -> PrecisionPlan:
        """Return the plan as it would be after `to_float` of some layers; nothing is changed."""
        with assuming_to_float(layers, float32):
            plan = self._planned()
            # A plan that was decided for good is not planned again.
            return plan if DECIDED.of(self._network) is None else plan_keeping(self._network, [plan])

    def enforce(self) -> None:
        """Apply the plan again if another was applied since, to the network or to layers that it shares."""
        current = applied_plan(self._network)
        if current is None or current.plan is not self.plan:
            self._applied = put_in_force(
                AppliedPlan(self._network, self.plan, lasting=False, storage=self._options.storage)
            )
        elif not current.in_force:
            current.enforce()

    def lease(self) -> Lease:
        """Return a new lease; the plan is undone when it is deleted."""
        lease = Lease(self._network)
        weakref.finalize(lease, self.end).atexit = False
        return lease

    def end(self) -> None:
        """Undo the plan, unless it was applied before the Model was made or another plan has replaced it."""
        current = applied_plan(self._network)
        if current is not None and self._applied is not None and current.plan is self._applied.plan:
            undo_soon(current)
