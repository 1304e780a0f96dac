"""`OverflowGuard`: stops a run that overflows without end, at the exact step, with as few device reads as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.finding import Finding
from mixtrain.errors import LossScaleExhausted
from mixtrain.loss_scale.rule import BAD_STEP_MAX, SMALLEST_SCALE, LossScaleState
from mixtrain.typing import Tensor


class _StepRecords(Protocol):
    """The records of the steps of a call, as far as the guard reads them."""

    @property
    def loss_scale(self) -> np.ndarray: ...

    @property
    def scaled(self) -> bool: ...

    def __len__(self) -> int: ...


class OverflowGuard:
    """Raises once more than `limit` steps overflowed consecutively, or at the smallest scale.

    The counts are on the device and increase by at most 1 per step. So after a read the guard knows for how many steps
    it need not read them again. `diagnose` finds the layer that overflows, for a batch and a scale.
    """

    def __init__(
        self, state: LossScaleState, diagnose: Callable[[Sequence[Tensor], float], Finding], *,
        limit: int = BAD_STEP_MAX,
    ) -> None:
        self._state = state
        self._diagnose = diagnose
        self._limit = limit
        self._free = limit - state.overflow_count()

    @property
    def free_steps(self) -> int:
        """Number of steps that can run before the counts have to be read, even if all of them overflow."""
        return max(self._free, 0)

    def after(
        self, records: _StepRecords, step: int, batch: Callable[[], Sequence[Tensor]], found: Sequence[Finding] = ()
    ) -> None:
        """Check the counts if the limit may have been reached by some steps.

        `batch`: Returns the batch of the last one. `found`: How that was explained already.
        """
        self._free -= len(records)
        if self._free > 0:
            return
        count = self._state.overflow_count()
        self._free = self._limit - count
        if count <= self._limit:
            return
        scale = float(records.loss_scale[-1] if records.scaled else backend.to_numpy(self._state.loss_scale))
        finding = found[-1] if found else self._diagnose(batch(), scale)
        in_a_row = int(backend.to_numpy(self._state.overflows_in_a_row))
        steps = f"{in_a_row} steps in a row" if in_a_row > self._limit else f"{count} steps at the smallest loss scale"
        note = " (the smallest there is)" if scale <= SMALLEST_SCALE else ""
        # A user who catches the error can train on: the counts start again.
        self._state.forget_overflows()
        raise LossScaleExhausted(
            f"Model: gradients must be finite now and then; {steps} overflowed, the last of them step {step} at loss "
            f"scale {scale:g}{note}. Found: {finding}.",
            step=step, loss_scale=scale, layer=finding.layer,
        )
