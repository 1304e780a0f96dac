"""Collect the data of a report about a Model and its last run, ready for JSON."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import math
import platform
import time
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.ranges import RangeRecords
from mixtrain.dtype import DType
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.overflow_monitor import OverflowMonitor, OverflowRecord
from mixtrain.train.callback.range_monitor import RangeMonitor
from mixtrain.train.records import StepRecords
from mixtrain.train.report_advice import advice
from mixtrain.train.run_context import RunContext
from mixtrain.train.watch import Watch
from mixtrain.typing import Network
from mixtrain.version import __version__

_COLUMNS: Final = ("path", "layer", "rule", "why", "compute_dtype", "parameter_dtype", "output_dtype")
# The first epochs of a longer run are dropped, to bound memory.
_MAX_STEPS: Final = 1_000_000


class LastRun(Callback):
    """Keeps the steps of a Model's last run, its epochs, and the records of its monitors; it has no step hooks.

    Of a run of more than 1,000,000 steps, only the last epochs with that many steps are kept.

    Attributes:
        facts: When the run started, its duration, optimizer and loss scaling; empty before the first run.
        epochs: The number, the last step and the values of each epoch that is kept.
    """

    def __init__(self) -> None:
        super().__init__()
        self.facts: dict[str, Any] = {}
        self.epochs: collections.deque[dict[str, Any]] = collections.deque()
        self._epochs: collections.deque[StepRecords] = collections.deque()
        self._count = 0
        self._began = 0.0
        self._monitors: list[Any] = []

    def on_train_begin(self, run_context: RunContext) -> None:
        """Discard the previous run."""
        self.epochs.clear()
        self._epochs.clear()
        self._count = 0
        self._began = time.perf_counter()
        arguments = run_context.original_args()
        manager, optimizer = arguments.get("loss_scale_manager"), arguments.get("optimizer")
        self.facts = {
            "started": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M:%S} UTC",
            "optimizer": "none" if optimizer is None else type(optimizer).__name__,
            "loss scaling": "none" if manager is None else type(manager).__name__,
            "seconds": None, "finished": False,
        }
        callbacks = arguments.get("list_callback", ())
        kinds = OverflowMonitor, RangeMonitor, Watch
        self._monitors = [monitor for monitor in callbacks if isinstance(monitor, kinds)]

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Keep the epoch's steps and values."""
        arguments = run_context.original_args()
        values = {name: _number(value) for name, value in arguments.epoch_values.items() if np.ndim(value) == 0}
        self.epochs.append({"epoch": arguments.cur_epoch_num, "step": arguments.cur_step_num, "values": values})
        self._epochs.append(arguments.epoch_results.compacted())
        self._count += len(self._epochs[-1])
        while self._count - len(self._epochs[0]) >= _MAX_STEPS:
            self._count -= len(self._epochs.popleft())
            self.epochs.popleft()
        self.facts["seconds"] = time.perf_counter() - self._began

    def on_train_end(self, run_context: RunContext) -> None:
        """Note the duration."""
        self.facts |= {"seconds": time.perf_counter() - self._began, "finished": True}

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

    @property
    def told(self) -> list[str]:
        """What was warned of."""
        return [line for monitor in self._monitors if isinstance(monitor, Watch) for line in monitor.told]


def report_data(network: Network, plan: PrecisionPlan, run: LastRun) -> dict[str, Any]:
    rows = [{name: _plain(getattr(row, name)) for name in _COLUMNS} for row in plan.rows]
    for row, planned in zip(rows, plan.rows, strict=True):
        row["compute_dtype"] = _plain(planned.float8 or planned.compute_dtype)
    device = backend.describe_device()
    steps, facts = run.steps, dict(run.facts)
    first = run.epochs[-1]["step"] - len(steps) + 1 if run.epochs else 1
    rate = float(steps.learning_rate[-1]) if len(steps) else math.nan
    if math.isfinite(rate):
        facts["optimizer"] += f", last learning rate {rate:.6g}"
    return {
        "network": type(network).__name__,
        "device": f"on {device.kind}" if device.name == device.kind else f"on {device.kind} ({device.name})",
        "run": facts | {"versions": _versions(), "epochs": [*run.epochs]},
        "plan": {"level": plan.level, "half": plan.half.name, "reason": plan.reason, "rows": rows},
        "steps": {
            "first": first,
            "loss": _numbers(steps.loss), "loss_scale": _numbers(steps.loss_scale), "overflow": steps.overflow.tolist(),
        },
        "overflows": [
            {"epoch": record.epoch, "step": record.step, "loss_scale": record.loss_scale,
             "next_loss_scale": record.next_loss_scale, "finding": str(record.finding),
             "before": [dataclasses.asdict(row) for row in record.finding.before]}
            for record in run.overflows
        ],
        "ranges": [row.as_dict() for row in run.ranges],
        "advice": [*run.told, *advice(steps, run.overflows, run.ranges, first)],
    }


def _plain(value: str | DType | None) -> str:
    """Return an entry of a plan as text."""
    return "" if value is None else value.name if isinstance(value, DType) else value


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _numbers(values: np.ndarray) -> list[float | None]:
    return [_number(value) for value in values]


def _versions() -> str:
    return (f"mixtrain {__version__}, keras {keras.__version__}, {backend.version()}, "
            f"python {platform.python_version()}")
