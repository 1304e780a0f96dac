"""What a run shows by itself: Keras's progress bar on a terminal, a line an epoch elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import keras

from mixtrain.train.callback import Callback, LossMonitor
from mixtrain.train.run_context import CallbackArguments, RunContext

Verbose = Literal["auto", 0, 1, 2]
_SECONDS_BETWEEN_LOOKS = 0.1


class ProgressMonitor(Callback):
    """Shows an epoch's progress.

    Args:
        last_epoch: Number of the run's last epoch.
        bar: Whether a bar is drawn; otherwise a line is printed at the end of an epoch.

    Example:
        >>> ProgressMonitor(10, bar=False).observes_only
        True
    """

    observes_only: ClassVar[bool] = True

    def __init__(self, last_epoch: int, *, bar: bool) -> None:
        super().__init__()
        self._last_epoch = last_epoch
        self._bar_wanted = bar
        self._bar: keras.utils.Progbar | None = None
        self._looked = 0.0
        self._started = 0.0
        self._first_step = 0

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Start the clock, and the bar."""
        arguments = run_context.original_args()
        self._first_step = arguments.get("cur_step_num", 0)
        self._started = time.perf_counter()
        if self._bar_wanted:
            print(f"epoch {self._numbered(arguments)}", flush=True)
            self._bar = keras.utils.Progbar(arguments.get("batch_num") or None, stateful_metrics=["loss", "loss_scale"])

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Draw the bar, a few times a second: only then is the loss read from the device."""
        if self._bar is None or time.perf_counter() - self._looked < _SECONDS_BETWEEN_LOOKS:
            return
        self._looked = time.perf_counter()
        arguments = run_context.original_args()
        records = arguments.step_results
        if records is not None:
            self._bar.update(arguments.cur_step_num - self._first_step, [("loss", float(records.loss[-1]))])

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Finish the bar, or print the epoch's line."""
        arguments = run_context.original_args()
        steps = arguments.cur_step_num - self._first_step
        values = dict(arguments.epoch_values)
        if self._bar is not None:
            worth = [(name, value) for name, value in values.items() if name != "skipped_steps" or value]
            self._bar.update(steps, worth, finalize=True)
            return
        milliseconds = (time.perf_counter() - self._started) / max(steps, 1) * 1000
        shown = ", ".join(f"{name} {value:.6g}" for name, value in values.items())
        print(f"epoch {self._numbered(arguments)}: {steps} steps, {milliseconds:.1f} ms a step, {shown}", flush=True)

    def _numbered(self, arguments: CallbackArguments) -> str:
        return f"{arguments.cur_epoch_num}/{self._last_epoch}"


def with_progress(callbacks: Any, verbose: Verbose, last_epoch: int) -> list[Any]:
    """Return the callbacks of a run, with one that shows its progress where it is wanted.

    Args:
        callbacks: None, a callback or a list of them.
        verbose: "auto": a bar on a terminal, lines elsewhere, nothing beside a callback that prints the loss; 0:
            nothing; 1: a bar; 2: lines.
        last_epoch: Number of the run's last epoch.
    """
    if callbacks is None:
        listed: list[Any] = []
    else:
        listed = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
    if verbose == 0 or (verbose == "auto" and any(_prints(callback) for callback in listed)):
        return listed
    bar = verbose == 1 or (verbose == "auto" and sys.stdout.isatty())
    return [*listed, ProgressMonitor(last_epoch, bar=bar)]


def _prints(callback: Any) -> bool:
    return isinstance(callback, LossMonitor)
