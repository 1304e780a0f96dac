"""`FirstScale`: the loss scale that nobody chose is found on the first batch, which is not lost for it."""

from __future__ import annotations

from typing import Final

import numpy as np

from mixtrain import backend
from mixtrain.loss_scale.rule import LossScaleState
from mixtrain.train.stepper import Batch, CallResult, Stepper

# The scale that the first batch allows is divided by this, so that batches with somewhat larger gradients, as come
# while a network begins to learn, are not lost either.
_MARGIN: Final = 8.0


class FirstScale:
    """Runs the first batch again and again, each time at the next smaller scale, until its update is applied.

    A step that overflows leaves everything but the scale and its counts as it was, random states too, so the step that
    is applied is the one that a run from that scale on would have made.

    Args:
        stepper: Runs steps.
        state: The live loss scale.

    Attributes:
        found: Whether the search is over.
    """

    def __init__(self, stepper: Stepper, state: LossScaleState) -> None:
        self._stepper = stepper
        self._state = state
        self.found = False

    def step(self, batch: Batch) -> CallResult:
        """Train on a batch.

        Returns:
            The result of the step that was applied; where no scale can help, for the loss itself is not finite or the
            smallest scale overflows too, that of the first attempt, as if there had been no other.
        """
        state = self._state
        counts = backend.to_numpy(state.counts)
        first = result = self._stepper.step(batch)
        after = [(variable, backend.to_numpy(variable)) for variable in state.variables()]
        while result.records.overflow[0]:
            hopeless = not np.isfinite(result.records.loss[0])
            if hopeless or float(result.records.loss_scale[0]) <= state.rule.minimum:
                for variable, value in after:
                    variable.assign(value)
                self.found = not hopeless
                return first
            state.counts.assign(counts)
            result = self._stepper.step(batch)
        self.found = True
        if result is not first:
            scale = float(backend.to_numpy(state.loss_scale))
            state.loss_scale.assign(max(scale / _MARGIN, state.rule.minimum))
        return result
