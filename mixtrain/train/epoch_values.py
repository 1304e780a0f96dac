"""Compute the values of an epoch from the records of its steps, and warn of losses that are not finite."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from mixtrain import backend
from mixtrain.dtype import HALF_DTYPES, DType, as_dtype, is_float
from mixtrain.train.records import StepRecords
from mixtrain.train.training_metrics import TrainingMetrics, last_values
from mixtrain.typing import Variable


def epoch_values(records: StepRecords, observer: TrainingMetrics | None = None) -> dict[str, Any]:
    """Compute the values of an epoch: the loss is the mean over the rows of all steps but those that were skipped.

    If no step was applied, the loss is that of the skipped steps whose forward pass was finite: only their gradients
    overflowed, so it still measures the network. It is nan if there is no such step. Metrics, which skipped steps leave
    out, then have the worst value of their direction (see `worst_like`), not the zeros of their reset.

    `records`: The steps of the epoch. `observer`: The metrics of the records, if they have any.
    """
    applied = ~records.overflow
    counted = applied if applied.any() else np.isfinite(records.loss)
    rows = records.rows[counted]
    losses = records.loss[counted].astype(np.float64)
    metrics = last_values(records)
    if observer is not None and not applied.any():
        worst = observer.worst_values()
        metrics = {name: worst[name] for name in metrics}
    values = {"loss": float(np.average(losses, weights=rows)) if rows.sum() else math.nan, **metrics}
    if records.scaled:
        values["loss_scale"] = float(records.loss_scale[-1])
        values["skipped_steps"] = int(records.overflow.sum())
    return values


def warn_of_non_finite(
    epoch: int, records: StepRecords, weights: Sequence[Variable], dtypes: Collection[DType]
) -> bool:
    """Warn of an epoch that no loss scale can help; return whether it is one.

    With loss scaling, that is one with skipped steps whose loss was not finite, or in half with applied ones; without,
    where no step is skipped, one after which weights are not finite.

    `epoch`: Its number, from 1. `records`: Its steps. `weights`: The weights after it; read only if a gradient was not
    finite. `dtypes`: Those that layers compute in.
    """
    if not records.scaled:
        return _weights_are_lost(epoch, records, weights)
    return _skipped_in_vain(epoch, records, any(dtype in HALF_DTYPES for dtype in dtypes))


def _weights_are_lost(epoch: int, records: StepRecords, weights: Sequence[Variable]) -> bool:
    norms = records.grad_norm
    if np.isfinite(norms).all():
        return False
    floats = [weight for weight in weights if is_float(as_dtype(weight.dtype))]
    lost = [weight for weight in floats if not np.isfinite(backend.to_numpy(weight).astype(np.float32)).all()]
    if not lost:
        return False
    # Of a user's own train step the norms are not known: all are nan.
    bad = ~np.isfinite(norms if np.isfinite(norms).any() else records.loss)
    since = f"step {int(bad.argmax()) + 1} of epoch {epoch}" if bad.any() else f"epoch {epoch}"
    warnings.warn(
        f"Model: {len(lost)} of {len(floats)} weights are not finite since {since}, as its gradients were not, and "
        "every step is applied. Write Model(..., explain_overflow=True) to skip such steps and see their cause, or "
        "loss_scale_manager=mixtrain.FixedLossScaleManager(1.0) to skip them.",
        stacklevel=3,
    )
    return True


def _skipped_in_vain(epoch: int, records: StepRecords, half: bool) -> bool:
    lost = ~np.isfinite(records.loss)
    skipped, applied = int((records.overflow & lost).sum()), int((~records.overflow & lost).sum()) if half else 0
    for count, verdict in (
        (skipped, "were skipped although a smaller loss scale cannot help: their loss itself was not finite"),
        (applied, "were applied with a loss that was not finite, because their gradients were finite"),
    ):
        if count:
            warnings.warn(
                f"Model: in epoch {epoch}, {count} of {len(records)} steps {verdict}. Look at the input data and at "
                "layers that overflow in half precision (model.precision_report(), to_float).",
                stacklevel=3,
            )
    return bool(skipped or applied)
