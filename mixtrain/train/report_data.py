"""Collect the data of a report about a Model and its last run, ready for JSON."""

from __future__ import annotations

import collections
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.ranges import RangeRecords
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.serialization.run_state import plan_facts
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.overflow_monitor import OverflowMonitor, OverflowRecord
from mixtrain.train.callback.range_monitor import RangeMonitor
from mixtrain.train.records import StepRecords
from mixtrain.train.run_context import RunContext
from mixtrain.typing import Network

_COLUMNS: Final = ("path", "layer", "rule", "compute_dtype", "parameter_dtype", "output_dtype")
# Fraction of skipped steps from which the report advises another loss scale.
_MANY_SKIPPED: Final = 0.1
# The first epochs of a longer run are dropped, to bound memory.
_MAX_STEPS: Final = 1_000_000


class LastRun(Callback):
    """Keeps the steps of a Model's last run, and the records of its monitors; it has no step hooks.

    Of a run of more than 1,000,000 steps, only the last epochs with that many steps are kept.
    """

    def __init__(self) -> None:
        super().__init__()
        self._epochs: collections.deque[StepRecords] = collections.deque()
        self._count = 0
        self._monitors: list[Any] = []

    def on_train_begin(self, run_context: RunContext) -> None:
        """Discard the previous run."""
        self._epochs.clear()
        self._count = 0
        callbacks = run_context.original_args().get("list_callback", ())
        self._monitors = [monitor for monitor in callbacks if isinstance(monitor, (OverflowMonitor, RangeMonitor))]

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Keep the epoch's steps."""
        self._epochs.append(run_context.original_args().epoch_results.compacted())
        self._count += len(self._epochs[-1])
        while self._count - len(self._epochs[0]) >= _MAX_STEPS:
            self._count -= len(self._epochs.popleft())

    @property
    def steps(self) -> StepRecords:
        return StepRecords.joined(self._epochs)

    @property
    def overflows(self) -> list[OverflowRecord]:
        """The skipped steps with their diagnoses."""
        return next((monitor.records for monitor in self._monitors if isinstance(monitor, OverflowMonitor)), [])

    @property
    def ranges(self) -> RangeRecords:
        records = (monitor.records for monitor in self._monitors if isinstance(monitor, RangeMonitor))
        return next(records, RangeRecords())


def report_data(network: Network, plan: PrecisionPlan, run: LastRun) -> dict[str, Any]:
    facts = plan_facts(plan)
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in facts["rows"]]
    device = backend.describe_device()
    steps = run.steps
    return {
        "network": type(network).__name__,
        "device": f"on {device.kind}" if device.name == device.kind else f"on {device.kind} ({device.name})",
        "plan": facts | {"reason": plan.reason, "rows": rows},
        "steps": {
            "loss": _numbers(steps.loss), "loss_scale": _numbers(steps.loss_scale), "overflow": steps.overflow.tolist(),
        },
        "overflows": [
            {"epoch": record.epoch, "step": record.step, "loss_scale": record.loss_scale,
             "next_loss_scale": record.next_loss_scale, "finding": str(record.finding)}
            for record in run.overflows
        ],
        "ranges": [row.as_dict() for row in run.ranges],
        "advice": advice(steps, run.overflows, run.ranges),
    }


def _numbers(values: np.ndarray) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]


def advice(steps: StepRecords, overflows: Sequence[OverflowRecord], ranges: RangeRecords) -> list[str]:
    """Return advice from the results of a run, in sentences."""
    lines = []
    skipped = int(steps.overflow.sum())
    kinds = collections.Counter((record.finding.kind, record.finding.layer) for record in overflows)
    for (kind, layer), count in kinds.most_common():
        if kind == "forward":
            lines.append(f"The output of layer {layer or '(network)'} overflowed in {count} steps: keep it in float32, "
                         "to_float(mixtrain.float32); suggest_rules(model, dataset) looks for the fewest such lines.")
        elif kind == "input":
            lines.append(f"{count} batches had values that are not finite, or do not fit: look at the data.")
        elif kind == "loss":
            lines.append(f"The loss itself overflowed in {count} steps: look at the loss function and the labels.")
    if len(steps) and skipped / len(steps) > _MANY_SKIPPED:
        lines.append(f"{skipped} of {len(steps)} steps were skipped: DynamicLossScaleManager(\"auto\") or "
                     "calibrate_loss_scale(model, dataset) starts at a scale that fits.")
    underflowing = [row.path or "(network)" for row in ranges.underflowing("float16")]
    if underflowing:
        layers = ", ".join(dict.fromkeys(underflowing))
        lines.append(f"float16 flushes most of the gradients of {layers} to zero: train with a "
                     "larger loss scale, or in bfloat16.")
    tight = [row.path or "(network)" for row in ranges
             if row.kind == "activation" and row.headroom("float16") < 1 and row.largest]
    if tight:
        lines.append(f"The outputs of {', '.join(dict.fromkeys(tight))} come near float16's largest number: keep these "
                     "layers in float32, or train in bfloat16.")
    return lines
