"""What an epoch came to, by the records of its steps: its values in the history, and a warning where no scale helps."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from mixtrain.train.records import StepRecords
from mixtrain.train.training_metrics import last_values


def epoch_values(records: StepRecords) -> dict[str, Any]:
    """Compute the values of an epoch from its steps: a batch counts in the loss by its rows, a skipped step does not.

    Where no step was applied, the loss is that of the skipped steps whose forward pass was finite: it tells how good
    the network is, for what overflowed is the gradients. It is nan where there is no such step.
    """
    applied = ~records.overflow
    counted = applied if applied.any() else np.isfinite(records.loss)
    rows = records.rows[counted]
    losses = records.loss[counted].astype(np.float64)
    values = {"loss": float(np.average(losses, weights=rows)) if rows.sum() else math.nan, **last_values(records)}
    if records.scaled:
        values["loss_scale"] = float(records.loss_scale[-1])
        values["skipped_steps"] = int(records.overflow.sum())
    return values


def warn_of_forward(epoch: int, records: StepRecords) -> bool:
    """Warn where steps were skipped whose loss itself was not finite; return whether there were any."""
    hopeless = int((records.overflow & ~np.isfinite(records.loss)).sum())
    if hopeless:
        warnings.warn(
            f"Model: in epoch {epoch}, {hopeless} of {len(records)} steps were skipped although a smaller loss scale "
            "cannot help: their loss itself was not finite. Look at the input data and at layers that overflow in "
            "half precision (model.precision_report(), to_float).",
            stacklevel=2,
        )
    return bool(hopeless)
