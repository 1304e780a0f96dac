"""`healthy_steps`: the steps before one that is not finite, from what a run records in any case."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Final

from mixtrain.diagnostics.finding import Finding, HealthyStep
from mixtrain.train.callback.range_monitor import RangeMonitor
from mixtrain.train.records import StepRecords

# How many steps are shown.
_COUNT: Final = 8
_KINDS: Final = {"forward": "activation", "gradient": "gradient", "parameter": "parameter"}


def healthy_steps(
    finding: Finding, recent: Sequence[StepRecords], step: int, callbacks: Iterable[object]
) -> tuple[HealthyStep, ...]:
    """Return the last steps that did not overflow, oldest first, and the earlier ones that a `RangeMonitor` sampled.

    `recent`: The records of the last calls, oldest first. `step`: The number of the last of their steps. `callbacks`:
    Those of the run.
    """
    if finding.kind in ("input", "none") or finding.scale is not None:
        return ()
    rows: dict[int, HealthyStep] = {}
    for records in reversed(recent):
        for index in reversed(range(len(records))):
            numbers = (float(column[index]) for column in (records.loss, records.grad_norm, records.loss_scale))
            if not records.overflow[index] and len(rows) < _COUNT:
                row = HealthyStep(step, *(number if math.isfinite(number) else None for number in numbers))
                rows[step] = row
            step -= 1
        if len(rows) == _COUNT:
            break
    key = _KINDS.get(finding.kind), finding.layer
    for monitor in (callback for callback in callbacks if isinstance(callback, RangeMonitor)):
        for sampled, ranges in monitor.latest:
            largest = [row.largest for row in ranges if (row.kind, row.path) == key]
            if largest and math.isfinite(largest[0]):
                rows[sampled] = dataclasses.replace(rows.get(sampled, HealthyStep(sampled)), largest=largest[0])
    return tuple(rows[number] for number in sorted(rows))
