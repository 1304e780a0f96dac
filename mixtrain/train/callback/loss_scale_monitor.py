"""`LossScaleMonitor`: records, prints and plots the loss scale and the skipped steps of a run."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np

from mixtrain import checks
from mixtrain.diagnostics.figures import new_figure, write_figure
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.loss_scale_records import LossScaleRecords
from mixtrain.train.callback.steps import steps_of
from mixtrain.train.records import RECENT_STEPS, StepRecords
from mixtrain.train.run_context import RunContext


class LossScaleMonitor(Callback):
    """Records loss, loss scale and overflow of every step, with host feed and sink feed.

    A summary is printed at the end of training: the last scale, how many steps were applied and skipped, and why.

    Args:
        per_print_times: Steps between prints, each with one line for every step since the last print that was skipped
            or whose scale had changed. 0 prints the summary alone.

    Raises: TypeError if `per_print_times` is not an int. ValueError if it is negative.

    Example: ``monitor = LossScaleMonitor()``, and after a run ``print(monitor.summary())``.
    """

    observes_only: ClassVar[bool] = True

    def __init__(self, per_print_times: int = 0) -> None:
        super().__init__()
        self._per_print_times = checks.integer(
            "LossScaleMonitor", "per_print_times", per_print_times, at_least=0, example=100
        )
        self._reset()

    def _reset(self) -> None:
        self._manager: Any = None
        # (epoch, last step, records) of calls that were not read from the device yet.
        self._pending: list[tuple[int, int, StepRecords]] = []
        self._records = LossScaleRecords.joined([])
        self._last_print_step = 0
        self._printed_rows = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        """Reset the records of an earlier run."""
        self._reset()
        super().on_train_begin(run_context)

    def step_end(self, run_context: RunContext) -> None:
        """Record the steps of a call; they are read from the device later."""
        arguments = run_context.original_args()
        self._manager = arguments.get("loss_scale_manager")
        step = arguments.cur_step_num
        self._pending.append((arguments.get("cur_epoch_num", 1), step, steps_of(arguments)))
        # Reading the latest calls would wait for the device.
        if len(self._pending) >= 2 * RECENT_STEPS:
            self._read(keep=RECENT_STEPS)
        if self._per_print_times and step - self._last_print_step >= self._per_print_times:
            self._last_print_step = step
            for line in self.records.events(self._printed_rows):
                print(line, flush=True)
            self._printed_rows = len(self.records)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Record nothing in an evaluation."""

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Read the epoch's steps from the device."""
        self._read()
        super().on_train_epoch_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """Print the summary."""
        print(self.summary(), flush=True)
        super().on_train_end(run_context)

    @property
    def records(self) -> LossScaleRecords:
        """All steps of the last run so far."""
        self._read()
        return self._records

    def summary(self) -> str:
        """Summarize loss scaling in a few lines."""
        records = self.records
        return records.summary(None if self._manager is None else float(self._manager.get_loss_scale()))

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Plot loss and loss scale over the steps in a matplotlib `Figure`, written to `path` unless it is None."""
        figure, records = new_figure("LossScaleMonitor.plot", 8, 5), self.records
        loss_axes, scale_axes = figure.subplots(2, 1, sharex=True)
        losses = np.where(records.applied, records.loss, np.nan)
        loss_axes.plot(records.step, losses, linewidth=1)
        loss_axes.set_ylabel("loss")
        scale_axes.step(records.step, records.loss_scale, where="mid", linewidth=1, label="loss scale")
        skipped = ~records.applied
        if skipped.any():
            scale_axes.plot(records.step[skipped], records.loss_scale[skipped], "rx", label="skipped step")
            scale_axes.legend(loc="best")
        scale_axes.set_yscale("log", base=2)
        scale_axes.set_ylabel("loss scale")
        scale_axes.set_xlabel("step")
        if path is not None:
            write_figure(figure, path)
        return figure

    def _read(self, keep: int = 0) -> None:
        """Read pending steps from the device, except those of the last `keep` calls."""
        count = len(self._pending) - keep
        if count > 0:
            parts = [self._from_device(*call) for call in self._pending[:count]]
            self._records = LossScaleRecords.joined([self._records, *parts])
            del self._pending[:count]

    def _from_device(self, epoch: int, last_step: int, records: StepRecords) -> LossScaleRecords:
        count = len(records)
        scale, overflow = records.loss_scale, records.overflow
        if not records.scaled and self._manager is not None:
            scale = np.full(count, self._manager.get_loss_scale(), np.float32)
        return LossScaleRecords(
            np.full(count, epoch), np.arange(last_step - count + 1, last_step + 1), records.loss, scale, overflow,
            ~overflow,
        )
