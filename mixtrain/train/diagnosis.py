"""`OverflowDiagnosis`: runs the batch of a skipped step again, instrumented, to find what overflowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from mixtrain import backend, context
from mixtrain.diagnostics.finding import Finding
from mixtrain.diagnostics.non_finite import StepCounts, find_non_finite
from mixtrain.diagnostics.replay import Replay
from mixtrain.train.networks import Networks
from mixtrain.typing import Tensor

# Factor between the scales that are tried if the rule has no backoff factor, as for a constant scale.
_FACTOR: Final = 2.0
# Number of replays before they are compiled, which pays only in a run with many overflows; most runs have few.
_UNCOMPILED_REPLAYS: Final = 0 if backend.EAGER_COMPILES else 3


class OverflowDiagnosis:
    """Explains overflows of a Model; the last finding is cached for its batch and scale.

    A skipped step changes nothing, not even random states, so that a second pass computes the numbers of the first.
    """

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._last: tuple[Any, float, Finding] | None = None
        self._replays = 0
        self._compiled: tuple[Any, Replay] | None = None

    def __call__(
        self, batch: Sequence[Tensor], loss_scale: float, non_finite_counts: np.ndarray | None = None
    ) -> Finding:
        """Find the layer or input of a batch that is not finite.

        Args:
            batch: The columns of the batch.
            loss_scale: The scale that the step used.
            non_finite_counts: The number of values that are not finite in the gradient of each weight, int
                (1, weights); None if unknown.
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
        replay = self._replay()
        counts = None if non_finite_counts is None else self._counts_by_layer(replay, non_finite_counts[-1])
        finding = find_non_finite(replay, batch, loss_scale, factor=factor, minimum=minimum, step_counts=counts)
        self._last = batch, loss_scale, finding
        return finding

    def forget_batch(self) -> None:
        """Release the last batch."""
        self._last = None

    def _counts_by_layer(self, replay: Replay, non_finite_counts: np.ndarray) -> StepCounts:
        """Return the counts of a step's gradients that are not finite, by the layers that own the weights."""
        weights = self._networks.step.weights
        counts = {id(weight): int(count) for weight, count in zip(weights, non_finite_counts, strict=True)}
        return {path: [counts.get(id(weight)) for weight in owned] for path, owned in replay.parameters.items()}

    def _replay(self) -> Replay:
        networks = self._networks
        self._replays += 1
        if self._replays <= _UNCOMPILED_REPLAYS or not context.graph_mode():
            return self._make_replay(None)
        plan = networks.precision.plan
        if self._compiled is None or self._compiled[0] is not plan:
            choice = networks.step.jit_choice()
            self._compiled = plan, self._make_replay(lambda run: backend.compile_function(run, choice=choice))
        return self._compiled[1]

    def _make_replay(self, compiled: Callable[[Callable[..., Any]], Callable[..., Any]] | None) -> Replay:
        networks = self._networks
        return Replay(networks.examined, networks.with_loss, float32=networks.in_float32, compiled=compiled)
