"""Compute the values of an epoch from the records of its steps, and warn of losses that are not finite."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from mixtrain.train.records import StepRecords
from mixtrain.train.training_metrics import last_values


def epoch_values(records: StepRecords) -> dict[str, Any]:
    """Compute the values of an epoch: the loss is the mean over the rows of all steps but those that were skipped.

    If no step was applied, the loss is that of the skipped steps whose forward pass was finite: only their gradients
    overflowed, so it still measures the network. It is nan if there is no such step. Metrics, which skipped steps leave
    out, are nan if no step was applied, not the zeros of their reset.
    """
    applied = ~records.overflow
    counted = applied if applied.any() else np.isfinite(records.loss)
    rows = records.rows[counted]
    losses = records.loss[counted].astype(np.float64)
    metrics = last_values(records)
    if not applied.any():
        metrics = {name: np.full_like(value, math.nan, float)[()] for name, value in metrics.items()}
    values = {"loss": float(np.average(losses, weights=rows)) if rows.sum() else math.nan, **metrics}
    if records.scaled:
        values["loss_scale"] = float(records.loss_scale[-1])
        values["skipped_steps"] = int(records.overflow.sum())
    return values


def warn_of_non_finite_loss(epoch: int, records: StepRecords) -> bool:
    """Warn of skipped steps whose loss itself was not finite; return whether there were any."""
    count = int((records.overflow & ~np.isfinite(records.loss)).sum())
    if count:
        warnings.warn(
            f"Model: in epoch {epoch}, {count} of {len(records)} steps were skipped although a smaller loss scale "
            "cannot help: their loss itself was not finite. Look at the input data and at layers that overflow in "
            "half precision (model.precision_report(), to_float).",
            stacklevel=2,
        )
    return bool(count)
