"""A batch that overflows is run again at smaller scales: to find the first scale, or so that no batch is lost."""

from __future__ import annotations

from typing import Final

import numpy as np

from mixtrain import backend
from mixtrain.loss_scale.rule import Count, LossScaleState
from mixtrain.step.gradient_window import GradientWindow
from mixtrain.train.stepper import Batch, CallResult, Stepper

# The scale that the first batch allows is divided by this, so that batches with somewhat larger gradients, as come
# while a network begins to learn, are not lost either.
_MARGIN: Final = 8.0
# How often a batch is run again where nothing is searched for: a batch that needs more is an outlier.
_RETRIES: Final = 4


class FirstScale:
    """Runs the first batch again and again, each time at the next smaller scale, until its update is applied.

    A step that overflows leaves everything but the scale and its counts as it was, random states too, so the step that
    is applied is the one that a run from that scale on would have made.

    Args:
        stepper: Runs steps.
        state: The live loss scale.
        window: Where the steps gather gradients, if they do.

    Attributes:
        found: Whether the search is over.
    """

    def __init__(self, stepper: Stepper, state: LossScaleState, window: GradientWindow | None = None) -> None:
        self._stepper = stepper
        self._state = state
        # What a step that overflows moves besides, and an attempt must not.
        self._moved = [state.counts, *(() if window is None else (window.counts,))]
        self.found = False

    def step(self, batch: Batch) -> CallResult:
        """Train on a batch.

        Returns:
            The result of the step that was applied; where no scale can help, for the loss itself is not finite or the
            smallest scale overflows too, that of the first attempt, as if there had been no other.
        """
        state = self._state
        before = [(variable, backend.to_numpy(variable).copy()) for variable in self._moved]
        first = result = self._stepper.step(batch)
        after = [(variable, backend.to_numpy(variable)) for variable in (*state.variables(), *self._moved)]
        while result.records.overflow[0]:
            hopeless = not np.isfinite(result.records.loss[0])
            if hopeless or float(result.records.loss_scale[0]) <= state.rule.minimum:
                for variable, value in after:
                    variable.assign(value)
                self.found = not hopeless
                return first
            for variable, value in before:
                variable.assign(value)
            result = self._stepper.step(batch)
        self.found = True
        if result is not first:
            scale = float(backend.to_numpy(state.loss_scale))
            state.loss_scale.assign(max(scale / _MARGIN, state.rule.minimum))
        return result


def step_with_retries(
    stepper: Stepper, state: LossScaleState, batch: Batch, result: CallResult | None = None
) -> CallResult:
    """Train on a batch; where it overflows, again at the smaller scale that the rule gave, a few times at most.

    Args:
        stepper: Runs steps.
        state: The live loss scale.
        batch: The batch.
        result: What the first attempt came to, where that was made.

    Returns:
        The result of the last attempt. The counts are those of a single step. A batch whose loss itself is not finite,
        or that overflows at the smallest scale, is not run again.
    """
    if result is None:
        result = stepper.step(batch)
    if not result.records.overflow[0]:
        return result
    once = backend.to_numpy(state.counts).copy()
    for _ in range(_RETRIES):
        hopeless = not np.isfinite(result.records.loss[0])
        if hopeless or float(result.records.loss_scale[0]) <= state.rule.minimum:
            break
        result = stepper.step(batch)
        if not result.records.overflow[0]:
            counts = backend.to_numpy(state.counts).copy()
            counts[Count.SKIPPED_STEPS] = once[Count.SKIPPED_STEPS] - 1
            state.counts.assign(counts)
            return result
    state.counts.assign(once)
    return result
