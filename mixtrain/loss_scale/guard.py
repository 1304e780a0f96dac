"""The guard against endless overflow: stops a run at the exact step, reading the device only when it must."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.finding import Finding
from mixtrain.errors import LossScaleExhausted
from mixtrain.loss_scale.rule import BAD_STEP_MAX, SMALLEST_SCALE, LossScaleState


class _StepRecords(Protocol):
    """What the guard reads of the records of a call."""

    @property
    def loss_scale(self) -> np.ndarray: ...

    @property
    def scaled(self) -> bool: ...

    def __len__(self) -> int: ...


class OverflowGuard:
    """Raises once more than `limit` steps overflowed in a row, or at the smallest scale.

    The counts are kept on the device and grow by at most one a step, so the guard knows how many steps it need not
    look.

    Args:
        state: The run's loss-scale state.
        diagnose: Looks for the layer that overflows, given the batch and the scale.
        limit: Maximum number of consecutive overflows.
    """

    def __init__(
        self,
        state: LossScaleState,
        diagnose: Callable[[Sequence[Any], float], Finding],
        *,
        limit: int = BAD_STEP_MAX,
    ) -> None:
        self._state = state
        self._diagnose = diagnose
        self._limit = limit
        self._free = limit - state.overflow_count()

    @property
    def free_steps(self) -> int:
        """How many steps can be run, whatever they do, before one that may have to end the run."""
        return max(self._free, 0)

    def after(self, records: _StepRecords, step: int, batch: Callable[[], Sequence[Any]]) -> None:
        """Look, where it may be time, after some steps.

        Args:
            records: Their results.
            step: Number of the last of them, from 1.
            batch: Returns the batch of the last of them, to look into should the run have to stop.

        Raises:
            LossScaleExhausted: Too many steps overflowed.
        """
        self._free -= len(records)
        if self._free > 0:
            return
        count = self._state.overflow_count()
        self._free = self._limit - count
        if count <= self._limit:
            return
        used = records.loss_scale[-1] if records.scaled else backend.to_numpy(self._state.loss_scale)
        scale = float(used)
        finding = self._diagnose(batch(), scale)
        in_a_row = int(backend.to_numpy(self._state.overflows_in_a_row))
        how = f"{in_a_row} steps in a row" if in_a_row > self._limit else f"{count} steps at the smallest loss scale"
        more = " (the smallest there is)" if scale <= SMALLEST_SCALE else ""
        self._state.forget_overflows()
        raise LossScaleExhausted(
            f"Model: gradients must be finite now and then; {how} overflowed, the last of them step {step} at loss "
            f"scale {scale:g}{more}. Found: {finding}.",
            step=step,
            loss_scale=scale,
            layer=finding.layer,
        )
