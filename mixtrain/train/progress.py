"""The progress of a run: Keras's progress bar on a terminal or in a notebook, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.train.callback import Callback, LossMonitor
from mixtrain.train.callback.callback import CallbacksLike
from mixtrain.train.records import EpochRecords, StepRecords
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.train.running_loss import RunningLoss
from mixtrain.train.training_metrics import last_values

Verbose = Literal["auto", 0, 1, 2]
BAR = 1
_SECONDS_BETWEEN_UPDATES = 0.1
# Lines within an epoch, which tell how long it still takes.
_SECONDS_BETWEEN_LINES = 60.0


class ProgressMonitor(Callback):
    """Shows an epoch's progress.

    `last_epoch`: Number of the run's last epoch. `bar`: Whether a bar is drawn; otherwise a line is printed at the end
    of an epoch, and each minute within. `size`: Number of batches in the data; None where it is unknown.
    """

    observes_only: ClassVar[bool] = True

    def __init__(self, last_epoch: int, *, bar: bool, size: int | None = None) -> None:
        super().__init__()
        self._last_epoch = last_epoch
        self._shows_bar = bar
        self._size = size
        self._bar: keras.utils.Progbar | None = None
        self._updated = 0.0
        self._started = 0.0
        self._first_step = 0
        self._running_loss, self._unread = RunningLoss(1), EpochRecords()

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Start the clock, and the bar."""
        arguments = run_context.original_args()
        self._first_step = arguments.get("cur_step_num", 0)
        self._started = self._updated = time.perf_counter()
        self._running_loss, self._unread = RunningLoss(arguments.cur_epoch_num), EpochRecords()
        if self._shows_bar:
            steps = arguments.get("batch_num") or None
            part = f": {self._steps(steps)}" if steps and self._size and steps < self._size else ""
            print(f"epoch {self._numbered(arguments)}{part}", flush=True)
            self._bar = keras.utils.Progbar(steps)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Update the bar at most ten times a second, or print a line each minute: the losses are read for it."""
        arguments = run_context.original_args()
        if arguments.step_results is not None:
            self._unread.add(arguments.step_results)
        if time.perf_counter() - self._updated < (_SECONDS_BETWEEN_UPDATES if self._bar else _SECONDS_BETWEEN_LINES):
            return
        self._updated = time.perf_counter()
        records, self._unread = self._unread.joined(), EpochRecords()
        if not len(records):
            return
        values, steps = self._running_loss.update(records) | last_values(records), arguments.cur_step_num
        if self._bar is not None:
            self._draw(steps - self._first_step, values)
        else:
            self._tell(arguments, steps - self._first_step, values)

    def _tell(self, arguments: CallbackArguments, done: int, values: Mapping[str, Any]) -> None:
        """Print a line within an epoch, with the time that the rest of it takes."""
        seconds, steps = self._updated - self._started, arguments.get("batch_num") or 0
        parts = [f"step {done} of {steps}" if steps > done else f"step {done}", f"{seconds:.0f} s"]
        parts += [f"{seconds / done * (steps - done):.0f} s left"] if steps > done else []
        numbers = [f"{name} {value:.6g}" for name, value in _numbers(values).items()]
        print(f"epoch {self._numbered(arguments)}: {', '.join([*parts, *numbers])}", flush=True)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Finish the bar, or print the epoch's line."""
        arguments = run_context.original_args()
        steps = arguments.cur_step_num - self._first_step
        values = dict(arguments.epoch_values)
        skips = _skips(arguments) if values.pop("skipped_steps", 0) else ""
        if skips:
            del values["loss_scale"]  # The text about skipped steps has it.
        if self._bar is not None:
            self._draw(steps, values, finalize=True)
            if skips:
                print(skips, flush=True)
            return
        milliseconds = (time.perf_counter() - self._started) / max(steps, 1) * 1000
        numbers = [f"{name} {value:.6g}" for name, value in _numbers(values).items()]
        parts = [self._steps(steps), f"{milliseconds:.1f} ms a step", *numbers, *([skips] if skips else [])]
        print(f"epoch {self._numbered(arguments)}: {', '.join(parts)}", flush=True)

    def _draw(self, steps: int, values: Mapping[str, Any], *, finalize: bool = False) -> None:
        """Update the bar with the values themselves: Keras averages all but its `stateful_metrics`."""
        numbers, bar = _numbers(values), self._bar
        if bar is not None:
            bar.stateful_metrics.update(numbers)
            bar.update(steps, list(numbers.items()), finalize=finalize)

    def _steps(self, steps: int) -> str:
        """Return the number of steps as text, with the number of batches where the data has more."""
        return f"{steps} of {self._size} steps" if self._size and steps < self._size else f"{steps} steps"

    def _numbered(self, arguments: CallbackArguments) -> str:
        return f"{arguments.cur_epoch_num}/{self._last_epoch}"


class EvaluationProgress(Callback):
    """Shows an evaluation: a bar, or a line at its end."""

    def __init__(self, *, bar: bool) -> None:
        super().__init__()
        self._bar: keras.utils.Progbar | None = None
        self._shows_bar = bar
        self._started = 0.0

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Start the clock, and the bar."""
        self._started = time.perf_counter()
        if self._shows_bar:
            self._bar = keras.utils.Progbar(run_context.original_args().get("batch_num") or None)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Move the bar, which draws itself at most ten times a second."""
        if self._bar is not None:
            self._bar.update(run_context.original_args().cur_step_num, finalize=False)

    def on_eval_end(self, run_context: RunContext) -> None:
        """Finish the bar, or print a line."""
        arguments = run_context.original_args()
        steps, values = arguments.cur_step_num, _numbers(arguments.metrics)
        if self._bar is not None:
            self._bar.stateful_metrics.update(values)
            self._bar.update(steps, list(values.items()), finalize=True)
            return
        seconds = time.perf_counter() - self._started
        numbers = [f"{name} {value:.6g}" for name, value in values.items()]
        print(f"evaluation: {', '.join([f'{steps} steps', f'{seconds:.1f} s', *numbers])}", flush=True)


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if np.ndim(value) == 0}


def _skips(arguments: CallbackArguments) -> str:
    records, scale = arguments.epoch_results, arguments._step.scale
    last = None if scale is None else backend.to_numpy(scale.variable)
    return skips_of(records, None if last is None else float(last.reshape(())))


def skips_of(records: StepRecords, last_scale: float | None) -> str:
    """Describe how many steps were skipped and how the loss scale changed, to `last_scale` or that of the last step.

    Example:
        >>> skips_of(StepRecords(np.ones(2), np.array([True, True]), np.float32([8, 4])), 2.0)
        '2 of 2 steps skipped while the loss scale came down from 8 to 2'
    """
    used = records.loss_scale
    scales = used if last_scale is None else np.append(used, last_scale)
    if scales.min() == scales.max():
        how = f"at the loss scale {scales[0]:.10g}"
    elif (np.diff(scales) <= 0).all():
        how = f"while the loss scale came down from {scales[0]:.10g} to {scales[-1]:.10g}"
    else:
        how = f"while the loss scale moved between {scales.min():.10g} and {scales.max():.10g}"
    return f"{int(records.overflow.sum())} of {len(records)} steps skipped {how}"


def resolve_verbose(verbose: Verbose, callbacks: list[Any]) -> int:
    """Return 0 (nothing), 1 (bar) or 2 (lines); "auto": 1 where a bar can be drawn, else 2; 0 if a callback prints."""
    if verbose != "auto":
        return int(verbose)
    if any(isinstance(callback, LossMonitor) for callback in callbacks):
        return 0
    return BAR if _draws_bars() else 2


def evaluation_verbose(where: str, verbose: Any) -> int:
    """Return 0, 1 or 2 for an evaluation or prediction; "auto": 1 where a bar can be drawn, else 0."""
    checks.one_of(where, "verbose", verbose, ("auto", 0, 1, 2))
    return int(verbose) if verbose != "auto" else int(_draws_bars())


def _draws_bars() -> bool:
    """Whether Keras's bar can draw over itself: on a terminal, and in a notebook."""
    return sys.stdout.isatty() or "ipykernel" in sys.modules


def as_list(callbacks: CallbacksLike | None) -> list[Any]:
    """Return callbacks as they are passed to `Model.train`, None, one or an iterable of them, as a list."""
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
