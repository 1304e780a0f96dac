"""`TimeMonitor`: prints how long an epoch and its steps took."""

from __future__ import annotations

import time
from typing import ClassVar

from mixtrain import checks
from mixtrain.train.callback.callback import Callback
from mixtrain.train.run_context import CallbackArguments, RunContext


class TimeMonitor(Callback):
    """Prints ``Train epoch time: 5432.109 ms, per step time: 2.897 ms`` after each epoch, likewise in evaluation.

    The time of an evaluation between epochs is not counted as training time.

    Args:
        data_size: Steps of an epoch, used if the run does not know their number.
        data_time: Whether to print also how long a step waited for its data; without effect with sink feed.

    Raises: TypeError if an argument has the wrong type. ValueError if `data_size` is less than 1.

    Example: ``TimeMonitor(data_size=100)``.
    """

    __module__ = "mixtrain.train.callback.time_monitor"  # By which pickles name it.

    observes_only: ClassVar[bool] = True

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        super().__init__()
        if data_size is not None:
            checks.integer("TimeMonitor", "data_size", data_size, at_least=1, example=100)
        self.data_size = data_size
        self.data_time = checks.boolean("TimeMonitor", "data_time", data_time)
        self.epoch_time = time.perf_counter()
        self._eval_start = 0.0
        self._data_seconds = 0.0
        self._wait_start = 0.0

    def epoch_begin(self, run_context: RunContext) -> None:
        """Start the clock."""
        now = time.perf_counter()
        if run_context.original_args().get("mode", "train") == "eval":
            self._eval_start = now
            return
        self.epoch_time = self._wait_start = now
        self._data_seconds = 0.0

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Add the time that the step waited for its data."""
        self._data_seconds += time.perf_counter() - self._wait_start
        super().on_train_step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Start the clock of waiting for data."""
        super().on_train_step_end(run_context)
        self._wait_start = time.perf_counter()

    def epoch_end(self, run_context: RunContext) -> None:
        """Print the times of the epoch, or of the evaluation."""
        arguments = run_context.original_args()
        steps, now = self._steps(arguments), time.perf_counter()
        if arguments.get("mode", "train") == "eval":
            self.epoch_time += now - self._eval_start
            print(_time_line("Eval", now - self._eval_start, steps), flush=True)
            return
        line = _time_line("Train", now - self.epoch_time, steps)
        if self.data_time and not arguments.get("dataset_sink_mode", False):
            line += f" (data time: {1000 * self._data_seconds / steps:5.3f} ms)"
        print(line, flush=True)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Start the clock; needed for evaluations between epochs, in which legacy hooks are not called."""
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Print the times; needed for evaluations between epochs."""
        self.epoch_end(run_context)

    def _steps(self, arguments: CallbackArguments) -> int:
        steps = arguments.get("batch_num", 0) or self.data_size
        if not steps:
            raise checks.fail_value(
                "TimeMonitor", "data_size is needed where the dataset's size is unknown", self.data_size,
                "TimeMonitor(data_size=100)",
            )
        return int(steps)


def _time_line(mode: str, seconds: float, steps: int) -> str:
    return f"{mode} epoch time: {1000 * seconds:5.3f} ms, per step time: {1000 * seconds / steps:5.3f} ms"
