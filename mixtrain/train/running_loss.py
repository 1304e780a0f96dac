"""`RunningLoss`: the mean loss of an epoch so far."""

from __future__ import annotations

import dataclasses

import numpy as np

from mixtrain.train.records import StepRecords


@dataclasses.dataclass
class RunningLoss:
    """The mean loss of the steps of an epoch so far, as Keras logs and shows it; skipped steps are left out.

    Before the first applied step it is the last finite loss of a skipped one: usually only gradients overflow.

    Attributes:
        epoch: Number of the epoch.
        loss: The loss to log; None before the first finite one.
        any_applied: Whether a step of the run was applied.
        total: The sum of the losses of applied steps, each times its rows.
        rows: The rows of applied steps.
        skipped: How many steps were skipped.
    """

    epoch: int
    loss: float | None = None
    any_applied: bool = False
    total: float = 0.0
    rows: int = 0
    skipped: int = 0

    def update(self, records: StepRecords) -> dict[str, float]:
        """Add some steps, and return the loss by name, if there is one."""
        overflow, losses, rows = records.overflow, records.loss.astype(np.float64), records.rows
        applied = ~overflow
        self.skipped += int(overflow.sum())
        self.total += float(losses[applied] @ rows[applied])
        self.rows += int(rows[applied].sum())
        if applied.any():
            self.loss, self.any_applied = self.total / self.rows, True
        elif not self.any_applied and np.isfinite(losses).any():
            self.loss = float(losses[np.isfinite(losses)][-1])
        return {} if self.loss is None else {"loss": self.loss}
