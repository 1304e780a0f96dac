"""`MetricsLogger`: gives the numbers of a run, by name, to a function that logs them."""

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
    """Calls ``log(values, step=...)`` after every so many steps and after each epoch, as loggers take it.

    ``wandb.log``, ``mlflow.log_metrics`` and ``trackio.log`` can be given as they are. Of steps there are "train/loss"
    (the mean over those applied since the last call), "train/ms_a_step", "train/learning_rate", "train/grad_norm", the
    running value of each of Keras's metrics, and with loss scaling "train/loss_scale" and "train/skipped_steps" (so far
    in the run). Of an epoch there is "epoch/number", and "epoch/..." for what the history has of it, its evaluation
    too; of an evaluation by itself "eval/...". A number that is not known, or not finite, is left out.

    Steps that run together in one compiled call have their time in common. What a call returned is read from the device
    when it is logged.

    Args:
        log: Takes a dict from name to float, and the number of the step by the name `step`.
        every: Steps from one call to the next; 0 for epochs alone.

    Raises:
        TypeError: `log` cannot be called, or `every` is not an int.
        ValueError: `every` is negative.

    Example:
        >>> import numpy as np
        >>> logger = MetricsLogger(lambda values, step: print(step, values["train/loss"]), every=2)
        >>> for step, loss in enumerate((1.0, 3.0), start=1):
        ...     logger.on_train_step_end(RunContext({"cur_step_num": step, "net_outputs": np.float32(loss)}))
        2 2.0
    """

    observes_only: ClassVar[bool] = True

    def __init__(self, log: Callable[..., Any], every: int = 1) -> None:
        super().__init__()
        if not callable(log):
            raise checks.fail_type("MetricsLogger", "log must be a function", log, "MetricsLogger(wandb.log)")
        self._log = log
        self._every = checks.integer("MetricsLogger", "every", every, at_least=0, example=100)
        self._training = False
        self._start()

    def _start(self) -> None:
        self._waiting = EpochRecords()
        self._step = self._epoch_steps = self._skipped = 0
        self._since = self._epoch_since = time.perf_counter()

    # ---- hooks ------------------------------------------------------------------------------------------------
    def on_train_begin(self, run_context: RunContext) -> None:
        """Forget an earlier run."""
        self._training = True
        self._start()

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Start the clock: time between epochs is no step's."""
        now = time.perf_counter()
        self._since += now - self._epoch_since
        self._epoch_since, self._epoch_steps = now, 0

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Take in the steps of a call, and log those that are due."""
        arguments = run_context.original_args()
        records = steps_of(arguments)
        before, self._step = arguments.cur_step_num - len(records), arguments.cur_step_num
        self._epoch_steps += len(records)
        if not self._every:
            return
        self._waiting.add(records)
        if self._step // self._every > before // self._every:
            self._log_steps()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Log the epoch."""
        now = time.perf_counter()
        arguments = run_context.original_args()
        values = {f"epoch/{name}": value for name, value in arguments.epoch_values.items()}
        if self._epoch_steps:
            values["epoch/ms_a_step"] = 1000 * (now - self._epoch_since) / self._epoch_steps
        self._tell({"epoch/number": arguments.cur_epoch_num, **values}, self._step)
        self._epoch_since = time.perf_counter()
        self._since += self._epoch_since - now

    def on_train_end(self, run_context: RunContext) -> None:
        """Note that evaluations from here on stand alone."""
        self._training = False

    def on_eval_end(self, run_context: RunContext) -> None:
        """Log an evaluation that belongs to no epoch."""
        if not self._training:
            found = run_context.original_args().get("metrics") or {}
            self._tell({f"eval/{name}": value for name, value in found.items()}, self._step)

    # ---- what is logged ---------------------------------------------------------------------------------------
    def _log_steps(self) -> None:
        now, records = time.perf_counter(), self._waiting.joined()
        first = self._step - len(records) + 1
        milliseconds = 1000 * (now - self._since) / len(records)
        start = 0
        for step in range(-(-first // self._every) * self._every, self._step + 1, self._every):
            end = step - first + 1
            self._tell(self._values(records, slice(start, end)) | {"train/ms_a_step": milliseconds}, step)
            start = end
        self._waiting = EpochRecords()
        for left in records.each()[start:]:
            self._waiting.add(left)
        self._since = now - milliseconds / 1000 * (len(records) - start)

    def _values(self, records: StepRecords, part: slice) -> dict[str, Any]:
        """Return the values of some steps, those of the last where they are not summed up."""
        last = part.stop - 1
        applied = np.flatnonzero(~records.overflow[part]) + part.start
        found = {"learning_rate": records.learning_rate[last]}
        found |= {name: values[last] for name, values in records.metrics.items()}
        if len(applied):
            found["loss"] = np.average(records.loss[applied].astype(np.float64), weights=records.rows[applied])
            found["grad_norm"] = records.grad_norm[applied[-1]]
        if records.scaled:
            self._skipped += part.stop - part.start - len(applied)
            found |= {"loss_scale": records.loss_scale[last], "skipped_steps": self._skipped}
        return {f"train/{name}": value for name, value in found.items()}

    def _tell(self, values: Mapping[str, Any], step: int) -> None:
        numbers = {name: float(value) for name, value in values.items() if np.ndim(value) == 0}
        self._log({name: value for name, value in numbers.items() if math.isfinite(value)}, step=step)
