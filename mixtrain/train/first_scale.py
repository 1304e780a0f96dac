"""Run a batch that overflows again at smaller loss scales: to find the first scale, or to lose no batch."""

from __future__ import annotations

from typing import Final

import numpy as np

from mixtrain import backend, checks
from mixtrain.loss_scale.manager import FixedLossScaleManager, LossScaleManager, host_driven
from mixtrain.loss_scale.rule import Count, LossScaleState
from mixtrain.step.gradient_window import GradientWindow
from mixtrain.train.stepper import CallResult, Stepper
from mixtrain.typing import Batch

# The scale that the first batch allows is divided by this: gradients grow somewhat while a network begins to learn, and
# the next batches should not overflow either.
FIRST_MARGIN: Final = 8.0
# Maximum number of retries of a batch after the search: a batch that needs more is an outlier.
_MAX_RETRIES: Final = 4


class FirstScale:
    """Runs the first batch repeatedly, each time at the next smaller scale, until its update is applied.

    A step that overflows changes only the scale and its counts, not even random states, so the step that is applied is
    the one that a run started at that scale would make.

    `stepper`: Runs steps. `state`: The loss scale in use. `window`: Accumulates the gradients of several steps, or
    None.

    Attributes:
        done: Whether the search is over.
    """

    def __init__(self, stepper: Stepper, state: LossScaleState, window: GradientWindow | None = None) -> None:
        self._stepper = stepper
        self._state = state
        # The counts that an overflow changes too; failed attempts must leave no trace in them.
        self._counts = [state.counts, *(() if window is None else (window.counts,))]
        self.done = False

    def step(self, batch: Batch) -> CallResult:
        """Train on a batch.

        Returns: The result of the step that was applied. If no scale helps, because the loss itself is not finite or
        the smallest scale overflows too, that of the first attempt, as if there had been no other.
        """
        state = self._state
        counts_before = [(variable, backend.to_numpy(variable).copy()) for variable in self._counts]
        first = result = self._stepper.step(batch)
        first_values = [(variable, backend.to_numpy(variable)) for variable in (*state.variables(), *self._counts)]
        while result.records.overflow[0]:
            hopeless = not np.isfinite(result.records.loss[0])
            if hopeless or float(result.records.loss_scale[0]) <= state.rule.minimum:
                for variable, value in first_values:
                    variable.assign(value)
                self.done = not hopeless
                return first
            for variable, value in counts_before:
                variable.assign(value)
            result = self._stepper.step(batch)
        self.done = True
        if result is not first:
            scale = float(backend.to_numpy(state.loss_scale))
            state.loss_scale.assign(max(scale / FIRST_MARGIN, state.rule.minimum))
        return result


def step_with_retries(
    stepper: Stepper, state: LossScaleState, batch: Batch, result: CallResult | None = None
) -> CallResult:
    """Train on a batch; if it overflows, again at the smaller scale that the rule sets, a few times at most.

    `stepper`: Runs steps. `state`: The loss scale in use. `result`: The result of the first
    attempt, if it has run already.

    Returns: The result of the last attempt. The counts are those of a single step. A batch whose loss itself is not
    finite, or that overflows at the smallest scale, is not run again.
    """
    if result is None:
        result = stepper.step(batch)
    if not result.records.overflow[0]:
        return result
    # All attempts together count as one step.
    counts_of_one = backend.to_numpy(state.counts).copy()
    for _ in range(_MAX_RETRIES):
        hopeless = not np.isfinite(result.records.loss[0])
        if hopeless or float(result.records.loss_scale[0]) <= state.rule.minimum:
            break
        result = stepper.step(batch)
        if not result.records.overflow[0]:
            counts = backend.to_numpy(state.counts).copy()
            counts[Count.SKIPPED_STEPS] = counts_of_one[Count.SKIPPED_STEPS] - 1
            state.counts.assign(counts)
            return result
    state.counts.assign(counts_of_one)
    return result


def check_retries(manager: LossScaleManager) -> None:
    """Refuse a manager that does not lower the scale inside the step, before the batch is run again.

    Raises: ValueError if its scale is constant, or Python code of the user's sets it.
    """
    if isinstance(manager, FixedLossScaleManager) or host_driven(manager):
        raise checks.fail_value(
            "Model", 'on_overflow="retry" needs a loss scale that the step itself makes smaller', manager,
            "loss_scale_manager=DynamicLossScaleManager()",
        )
