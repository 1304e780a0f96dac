"""`MetricsLogger`: passes the metrics of a run, by name, to a logging function."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from mixtrain import checks
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.steps import steps_of
from mixtrain.train.records import EpochRecords, StepRecords
from mixtrain.train.run_context import RunContext


class MetricsLogger(Callback):
    """Calls ``log(values, step=...)`` every `every` steps and after each epoch.

    ``wandb.log``, ``mlflow.log_metrics`` and ``trackio.log`` can be passed directly. Values of steps are "train/loss"
    (the mean over the steps applied since the last call), "train/ms_a_step", "train/learning_rate", "train/grad_norm",
    the running value of each Keras metric, and with loss scaling "train/loss_scale" and "train/skipped_steps" (so far
    in the run). Values of an epoch are "epoch/number", and "epoch/..." for each entry of the history, including its
    evaluation. A separate evaluation logs "eval/...". Values that are unknown or not finite are left out.

    Steps of one compiled call share their mean time. Results of a call are read from the device when they are logged.

    Args:
        log: Takes a dict from name to float, and the number of the step as the keyword argument `step`.
        every: Steps between calls; 0 to log epochs only.

    Raises: TypeError if `log` cannot be called, or `every` is not an int. ValueError if `every` is negative.

    Example: ``MetricsLogger(wandb.log, every=50)``.
    """

    observes_only: ClassVar[bool] = True

    def __init__(self, log: Callable[..., Any], every: int = 1) -> None:
        super().__init__()
        if not callable(log):
            raise checks.fail_type("MetricsLogger", "log must be a function", log, "MetricsLogger(wandb.log)")
        self._log = log
        self._every = checks.integer("MetricsLogger", "every", every, at_least=0, example=100)
        self._training = False
        self._reset()

    def _reset(self) -> None:
        self._pending = EpochRecords()
        self._step = self._epoch_steps = self._skipped = 0
        self._steps_start = self._epoch_start = time.perf_counter()

    def on_train_begin(self, run_context: RunContext) -> None:
        """Reset the state of an earlier run."""
        self._training = True
        self._reset()

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Start the clock: time between epochs does not count as time of a step."""
        now = time.perf_counter()
        self._steps_start += now - self._epoch_start
        self._epoch_start, self._epoch_steps = now, 0

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Record the steps of a call, and log those that are due."""
        arguments = run_context.original_args()
        records = steps_of(arguments)
        previous, self._step = arguments.cur_step_num - len(records), arguments.cur_step_num
        self._epoch_steps += len(records)
        if not self._every:
            return
        self._pending.add(records)
        if self._step // self._every > previous // self._every:
            self._log_steps()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Log the epoch."""
        now = time.perf_counter()
        arguments = run_context.original_args()
        values = {f"epoch/{name}": value for name, value in arguments.epoch_values.items()}
        if self._epoch_steps:
            values["epoch/ms_a_step"] = 1000 * (now - self._epoch_start) / self._epoch_steps
        self._log_finite({"epoch/number": arguments.cur_epoch_num, **values}, self._step)
        # Until the next epoch begins, this is the time at which the last one ended.
        self._epoch_start = time.perf_counter()
        self._steps_start += self._epoch_start - now

    def on_train_end(self, run_context: RunContext) -> None:
        """Note that later evaluations are separate ones."""
        self._training = False

    def on_eval_end(self, run_context: RunContext) -> None:
        """Log an evaluation that is not part of training."""
        if not self._training:
            metrics = run_context.original_args().get("metrics") or {}
            self._log_finite({f"eval/{name}": value for name, value in metrics.items()}, self._step)

    def _log_steps(self) -> None:
        now, records = time.perf_counter(), self._pending.joined()
        first = self._step - len(records) + 1
        milliseconds = 1000 * (now - self._steps_start) / len(records)
        start = 0
        # From the first multiple of `every`, by a ceiling division.
        for step in range(-(-first // self._every) * self._every, self._step + 1, self._every):
            end = step - first + 1
            self._log_finite(self._values(records, slice(start, end)) | {"train/ms_a_step": milliseconds}, step)
            start = end
        self._pending = EpochRecords()
        for record in records.each()[start:]:
            self._pending.add(record)
        self._steps_start = now - milliseconds / 1000 * (len(records) - start)

    def _values(self, records: StepRecords, part: slice) -> dict[str, Any]:
        """Return the values of a slice of steps: the mean loss, the sum of skipped steps, the last of the others."""
        last = part.stop - 1
        applied = np.flatnonzero(~records.overflow[part]) + part.start
        values = {"learning_rate": records.learning_rate[last]}
        values |= {name: column[last] for name, column in records.metrics.items()}
        if len(applied):
            values["loss"] = np.average(records.loss[applied].astype(np.float64), weights=records.rows[applied])
            values["grad_norm"] = records.grad_norm[applied[-1]]
        if records.scaled:
            self._skipped += part.stop - part.start - len(applied)
            values |= {"loss_scale": records.loss_scale[last], "skipped_steps": self._skipped}
        return {f"train/{name}": value for name, value in values.items()}

    def _log_finite(self, values: Mapping[str, Any], step: int) -> None:
        """Log the finite scalars among some values."""
        numbers = {name: float(value) for name, value in values.items() if np.ndim(value) == 0}
        self._log({name: value for name, value in numbers.items() if math.isfinite(value)}, step=step)
