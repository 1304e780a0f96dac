"""`OverflowDiagnosis`: runs the batch of a skipped step again, instrumented, to find what overflowed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from mixtrain import backend, execution
from mixtrain.diagnostics.finding import Finding
from mixtrain.diagnostics.float8_scales import float8_scales, scaled_layers
from mixtrain.diagnostics.non_finite import StepCounts, find_non_finite
from mixtrain.diagnostics.origin import Origins
from mixtrain.diagnostics.replay import Cures, Replay
from mixtrain.dtype import float32
from mixtrain.network.walk import tree_of
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.train.networks import Networks
from mixtrain.typing import Layer, Tensor

# Factor between the scales that are tried if the rule has no backoff factor, as for a constant scale.
_FACTOR: Final = 2.0
# Number of replays before they are compiled, which pays only in a run with many overflows; most runs have few.
_UNCOMPILED_REPLAYS: Final = 0 if backend.EAGER_COMPILES else 3
# The kind and layer of a finding, and the scale that would do or the smallest.
_Claim: TypeAlias = tuple[str, str | None, float]
_Compiler: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclasses.dataclass
class _UnderPlan:
    """What is known under a plan.

    `origins`: The search for lines. `float8`: The layers with float8 scales, with their paths. `cures`: As of `Replay`.
    `shown`: What the step has shown to hold. `replay`: The compiled replay, once there is one.
    """

    plan: PrecisionPlan
    origins: Origins
    float8: list[tuple[str, Layer]]
    cures: Cures = dataclasses.field(default_factory=dict)
    shown: set[_Claim] = dataclasses.field(default_factory=set)
    replay: Replay | None = None


class OverflowDiagnosis:
    """Explains overflows of a Model; the last finding is cached for its batch and scale.

    A skipped step changes nothing, not even random states, so that a second pass computes the numbers of the first.
    `finite_at`: Whether the step, as it runs, has a finite loss and finite gradients on a batch at a loss scale; None
    if it cannot tell.
    """

    def __init__(self, networks: Networks, finite_at: Callable[[Sequence[Tensor], float], bool | None]) -> None:
        self._networks = networks
        self._finite_at = finite_at
        self._last: tuple[Any, float, Finding] | None = None
        self._replays = 0
        self._known: _UnderPlan | None = None

    def __call__(
        self, batch: Sequence[Tensor], loss_scale: float, non_finite_counts: np.ndarray | None = None
    ) -> Finding:
        """Find the layer or input of a batch that is not finite.

        `batch`: The columns of the batch. `loss_scale`: The scale that the step used. `non_finite_counts`: The number
        of values that are not finite in the gradient of each weight, int (1, weights); None if unknown.
        """
        last = self._last
        if last is not None and last[0] is batch and last[1] == loss_scale:
            return last[2]
        networks = self._networks
        factor, minimum = _FACTOR, 1.0
        if networks.scaled:
            rule = networks.step.state.rule
            rule_factor = rule.factor if rule.backoff is None else 1.0 / rule.backoff
            factor, minimum = (rule_factor if rule_factor > 1 else _FACTOR), rule.minimum
        networks.precision.enforce()
        self._replays += 1
        graph_mode = execution.current.graph_mode
        # Compiled, as the step was, where the step differs: a compiler may compute NaN of 0 * inf, and operations 0.
        for compiled in dict.fromkeys([graph_mode and self._replays > _UNCOMPILED_REPLAYS, graph_mode]):
            replay = self._replay(compiled)
            counts = None if non_finite_counts is None else self._counts_by_layer(replay, non_finite_counts[-1])
            finding = find_non_finite(replay, batch, loss_scale, factor=factor, minimum=minimum, step_counts=counts)
            # What was shown before is not tried again, unless the passes were not compiled as the step is.
            shown = self._under_plan().shown if compiled else set()
            if finding.kind != "none" and self._holds(finding, batch, minimum, shown):
                break
        else:
            finding = self._with_scale(finding, batch, loss_scale, factor, minimum)
        broken = {each.path: fault for each in float8_scales(self._under_plan().float8) if (fault := each.invalid())}
        finding = dataclasses.replace(
            finding, origin=self._origin(finding, batch, minimum), float8=broken.get(finding.layer or "")
        )
        self._last = batch, loss_scale, finding
        return finding

    def _holds(
        self, finding: Finding, batch: Sequence[Tensor], minimum: float, shown: set[_Claim]
    ) -> bool:
        """Whether the step is as a finding says: finite at the scale that would do, or not even at the smallest.

        `shown`: The findings and scales that were tried before; this one is added.
        """
        scale = finding.scale or minimum
        key = finding.kind, finding.layer, scale
        if key not in shown and self._finite_at(batch, scale) is (finding.scale is None):
            return False
        shown.add(key)
        return True

    def _with_scale(
        self, finding: Finding, batch: Sequence[Tensor], loss_scale: float, factor: float, minimum: float
    ) -> Finding:
        """Return a finding with the largest scale at which the step is finite, found by trying."""
        scale = finding.scale or loss_scale
        while finding.kind != "none" and scale > minimum:
            scale = max(scale / factor, minimum)
            if self._finite_at(batch, scale):
                return dataclasses.replace(finding, scale=scale)
        return dataclasses.replace(finding, scale=None)

    def forget_batch(self) -> None:
        """Release the last batch."""
        self._last = None

    def _counts_by_layer(self, replay: Replay, non_finite_counts: np.ndarray) -> StepCounts:
        """Return the counts of a step's gradients that are not finite, by the layers that own the weights."""
        weights = self._networks.step.weights
        counts = {id(weight): int(count) for weight, count in zip(weights, non_finite_counts, strict=True)}
        return {path: [counts.get(id(weight)) for weight in owned] for path, owned in replay.parameters.items()}

    def _origin(self, finding: Finding, batch: Sequence[Tensor], loss_scale: float) -> str | None:
        try:
            return self._under_plan().origins(finding, batch, loss_scale)
        except Exception:
            # What runs in a step may fail operation by operation, as code that reads values; the finding stands.
            return None

    def _under_plan(self) -> _UnderPlan:
        networks = self._networks
        plan = networks.precision.plan
        if self._known is None or self._known.plan is not plan:
            compiles = backend.EAGER_COMPILES and execution.current.graph_mode
            origins = Origins(
                networks.examined, networks.with_loss, networks.keeping_float32, self._compiler() if compiles else None
            )
            self._known = _UnderPlan(plan, origins, scaled_layers(networks.examined))
        return self._known

    def _compiler(self) -> _Compiler:
        # Where layers are in float32, the step may be compiled otherwise: XLA has NaN of 0 * inf, and others 0.
        return lambda function: backend.compile_function(function, choice=self._networks.step.jit_choice())

    def _replay(self, compiled: bool) -> Replay:
        if not compiled:
            return self._make_replay(None)
        known = self._under_plan()
        if known.replay is None:
            known.replay = self._make_replay(self._compiler())
        return known.replay

    def _make_replay(self, compiled: _Compiler | None) -> Replay:
        networks = self._networks
        # A normalization that computes in float32 may return half, whose range its output overflows.
        rows = {
            id(row.target): (row.output_dtype if row.compute_dtype == float32 else row.compute_dtype).name
            for row in networks.precision.plan.rows
        }
        nodes = tree_of(networks.examined).walk()
        return Replay(
            networks.examined, networks.with_loss, float32=networks.keeping_float32, compiled=compiled,
            computes_in={node.path: rows[id(node.layer)] for node in nodes if id(node.layer) in rows},
            cures=self._under_plan().cures,
        )
