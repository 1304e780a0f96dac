"""`OverflowDiagnosis`: runs the batch of a skipped step again, instrumented, and says what overflowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from mixtrain import backend, context
from mixtrain.diagnostics.finding import Finding
from mixtrain.diagnostics.non_finite import Told, find_non_finite
from mixtrain.diagnostics.replay import Replay
from mixtrain.precision.formats import choose_step_jit
from mixtrain.train.networks import Networks

# What smaller scales are looked for by where the scale is constant.
_FACTOR: Final = 2.0
# How many batches are replayed layer by layer: compiling pays where a run has many overflows, and most have few.
_UNCOMPILED: Final = 0 if backend.EAGER_COMPILES else 3


class OverflowDiagnosis:
    """Explains overflows of a Model; asked twice of the same batch and scale, it answers from memory.

    A skipped step leaves everything as it was, random states too, so that a second pass has the numbers of the first.

    Args:
        networks: What is trained.
    """

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._last: tuple[Any, float, Finding] | None = None
        self._replayed = 0
        self._compiled: tuple[Any, Replay] | None = None

    def __call__(
        self, batch: Sequence[Any], loss_scale: float, non_finite_counts: np.ndarray | None = None
    ) -> Finding:
        """Return where numbers went wrong.

        Args:
            batch: The columns of the batch.
            loss_scale: The scale that the step used.
            non_finite_counts: How many values of the gradient of each weight were not finite in the step, int
                (1, weights); None where that is not known.
        """
        last = self._last
        if last is not None and last[0] is batch and last[1] == loss_scale:
            return last[2]
        networks = self._networks
        factor, minimum = _FACTOR, 1.0
        if networks.scaled:
            rule = networks.train_network.state.rule
            shrinking = rule.factor if rule.backoff is None else 1.0 / rule.backoff
            factor, minimum = (shrinking if shrinking > 1 else _FACTOR), rule.minimum
        networks.precision.enforce()
        replay = self._replay()
        told = None if non_finite_counts is None else self._told(replay, non_finite_counts[-1])
        finding = find_non_finite(replay, batch, loss_scale, factor=factor, minimum=minimum, told=told)
        self._last = batch, loss_scale, finding
        return finding

    def forget_batch(self) -> None:
        """Let go of the batch that was asked about last."""
        self._last = None

    def _told(self, replay: Replay, non_finite_counts: np.ndarray) -> Told:
        """Return what a step knows of the gradients of its weights, by the layers that own them."""
        weights = self._networks.train_network.weights
        known = {id(weight): int(count) for weight, count in zip(weights, non_finite_counts, strict=True)}
        return {path: [known.get(id(one)) for one in owned] for path, owned in replay.parameters.items()}

    def _replay(self) -> Replay:
        networks = self._networks
        self._replayed += 1
        if self._replayed <= _UNCOMPILED or not context.graph_mode():
            return self._replay_by(None)
        plan = networks.precision.plan
        if self._compiled is None or self._compiled[0] is not plan:
            choice = choose_step_jit(networks.train_network)
            self._compiled = plan, self._replay_by(lambda run: backend.compile_function(run, choice=choice))
        return self._compiled[1]

    def _replay_by(self, compiled: Callable[[Callable[..., Any]], Callable[..., Any]] | None) -> Replay:
        networks = self._networks
        return Replay(networks.examined, networks.with_loss, float32=networks.in_float32, compiled=compiled)
