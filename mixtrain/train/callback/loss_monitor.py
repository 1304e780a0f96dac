"""`LossMonitor`: prints the loss, and stops a run whose loss is not finite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from mixtrain import checks
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.steps import steps_of
from mixtrain.train.run_context import CallbackArguments, RunContext


class LossMonitor(Callback):
    """Prints ``epoch: 1 step: 32, loss is 2.3018966``; with sink feed, for the last step of a call.

    A loss that is not finite ends the run, unless loss scaling skipped the step; the line then says so. After an epoch
    of `Model.fit` with an evaluation, its metrics are printed.

    Args:
        per_print_times: Steps between printed lines; 0 prints none.

    Raises: TypeError if `per_print_times` is not an int. ValueError if it is negative.

    Example: ``LossMonitor(per_print_times=100)``.
    """

    observes_only: ClassVar[bool] = True

    def __init__(self, per_print_times: int = 1) -> None:
        super().__init__()
        self._per_print_times = checks.integer("LossMonitor", "per_print_times", per_print_times, at_least=0, example=1)
        self._last_print_time = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        """Count steps from 0."""
        self._last_print_time = 0
        super().on_train_begin(run_context)

    def step_end(self, run_context: RunContext) -> None:
        """Print the loss of the step, if it is due; a ValueError if a loss is not finite and its step not skipped."""
        arguments = run_context.original_args()
        records = steps_of(arguments)
        losses, skipped = records.loss, records.overflow
        if records.scaled or not isinstance(arguments.get("net_outputs"), (tuple, list)):
            _check_finite(arguments, losses, skipped)
        step = arguments.cur_step_num
        if self._per_print_times and step - self._last_print_time >= self._per_print_times:
            self._last_print_time = step
            note = f", step skipped: overflow at loss scale {records.loss_scale[-1]:.10g}" if skipped[-1] else ""
            print(f"{_step_label(arguments, step)}, loss is {losses[-1]!s}{note}", flush=True)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Print nothing in an evaluation."""

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Print the metrics of the evaluation after this epoch, if there was one."""
        super().on_train_epoch_end(run_context)
        arguments = run_context.original_args()
        metrics = arguments.get("metrics")
        if metrics:
            print(f"Eval result: epoch {arguments.cur_epoch_num}, metrics: {_python_numbers(metrics)}")


def _step_label(arguments: CallbackArguments, step: int) -> str:
    batch_num = arguments.get("batch_num", 0) or step
    return f"epoch: {arguments.get('cur_epoch_num', 1)} step: {(step - 1) % batch_num + 1}"


def _check_finite(arguments: CallbackArguments, losses: np.ndarray, skipped: np.ndarray) -> None:
    non_finite = np.flatnonzero(~np.isfinite(losses) & ~skipped)
    if len(non_finite):
        first = int(non_finite[0])
        label = _step_label(arguments, arguments.cur_step_num - len(losses) + 1 + first)
        raise ValueError(
            f"In {label}, loss is NAN or INF: expected a finite loss; got {losses[first]!s}. "
            "Write a smaller learning rate, or look at the input data."
        )


def _python_numbers(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Convert NumPy scalars to Python numbers, whose repr has no dtype."""
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in metrics.items()}
