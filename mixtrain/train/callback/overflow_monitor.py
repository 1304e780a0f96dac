"""`OverflowMonitor`: reports what overflowed in each skipped step, by how much, and what would help."""

from __future__ import annotations

import dataclasses

from mixtrain import backend
from mixtrain.diagnostics.finding import Finding
from mixtrain.train.callback.callback import Callback
from mixtrain.train.healthy_steps import healthy_steps
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.train.weight_growth import WeightGrowth


@dataclasses.dataclass(frozen=True)
class OverflowRecord:
    """A skipped step and its cause; `str` formats it as one line.

    Attributes:
        epoch: Number of the epoch, from 1.
        step: Number of the step over all epochs, from 1.
        loss_scale: The scale that the step used.
        next_loss_scale: The scale of the next step.
        finding: The first tensor that is not finite: ``kind``, ``layer``, ``count`` of ``size`` values, the ``largest``
            magnitude, and the ``scale`` that would avoid it.

    Example: ``print(OverflowRecord(1, 7, 1024.0, 512.0, finding))``.
    """

    epoch: int
    step: int
    loss_scale: float
    next_loss_scale: float
    finding: Finding

    def __str__(self) -> str:
        change = f" -> {self.next_loss_scale:.10g}" if self.next_loss_scale != self.loss_scale else ""
        return f"step {self.step}: scale {self.loss_scale:.10g}{change}: {self.finding}"


class OverflowMonitor(Callback):
    """Reports which layer overflowed in each skipped step, by how much, and which loss scale would avoid it.

    A skipped step changes nothing, so its batch is run again, layer by layer, and reproduces the numbers that
    overflowed. One line is printed for it. For consecutive steps with the same finding, the first is printed, and then
    how many followed. Steps without overflow still run together in one call; a call ends at a step that overflows.

    Args:
        verbose: Whether lines are printed; `records` is filled in any case.

    Attributes:
        records: An `OverflowRecord` for each skipped step of the last run, oldest first.

    Example: ``model.train(1, dataset, callbacks=[OverflowMonitor()])`` prints lines as "step 1: scale 32768 -> 16384:
        gradient of layer fc's output: 1 of 1 values above 65504, the largest 6.6e+04; forward finite; scale 16384 would
        do".
    """

    def __init__(self, verbose: bool = True) -> None:
        super().__init__()
        self._verbose = verbose
        self.records: list[OverflowRecord] = []
        self._repeated = 0
        self._growth: WeightGrowth | None = None
        self._first_step = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        """Reset the records of an earlier run."""
        arguments = run_context.original_args()
        self.records = []
        self._repeated = 0
        self._growth = WeightGrowth(getattr(arguments.get("_step"), "weights", ()))
        self._first_step = arguments.get("cur_step_num", 0)
        super().on_train_begin(run_context)

    def on_train_overflow(self, run_context: RunContext) -> None:
        """Run the batch again, and record and print what overflowed."""
        arguments = run_context.original_args()
        scale = float(arguments.step_results.loss_scale[-1])  # type: ignore[union-attr]
        next_scale = float(backend.to_numpy(arguments._step.scale.variable))
        finding = self._with_growth(arguments)
        before = healthy_steps(
            finding, arguments.get("_recent", ()), arguments.cur_step_num, arguments.get("list_callback", ())
        )
        finding = dataclasses.replace(finding, before=before)
        arguments.get("_found", []).append(finding)
        record = OverflowRecord(arguments.cur_epoch_num, arguments.cur_step_num, scale, next_scale, finding)
        if self._repeats(record):
            self._repeated += 1
        else:
            self._print_repeated()
            self._print(str(record))
        self.records.append(record)

    def _repeats(self, record: OverflowRecord) -> bool:
        """Whether a record says of the next step what the last one said."""
        if not self.records or self.records[-1].step != record.step - 1 or self.records[-1].finding != record.finding:
            return False
        last, finding = self.records[-1].finding, record.finding
        changes = finding.scale is not None or finding.growth is not None  # With each step, as the scale does.
        return changes or last.advice() == finding.advice()

    def _with_growth(self, arguments: CallbackArguments) -> Finding:
        """Explain a step; add the growth of the weights to what no loss scale helps with, if it is the cause."""
        finding, steps = arguments.explain_overflow(), arguments.cur_step_num - self._first_step - 1
        if finding.kind in ("input", "none") or finding.scale is not None or self._growth is None or steps < 1:
            return finding
        losses = [loss for records in arguments.get("_recent", ()) for loss in records.loss[~records.overflow]]
        if len(losses) > 2 and losses[-1] <= 2 * min(losses):
            return finding  # Training was well until this batch.
        growth = self._growth.since(steps)
        return finding if growth is None else dataclasses.replace(finding, growth=growth, steps=steps)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Print how often the last finding was repeated."""
        self._print_repeated()
        super().on_train_epoch_end(run_context)

    def _print_repeated(self) -> None:
        if self._repeated:
            last = self.records[-1]
            steps = "1 more step" if self._repeated == 1 else f"{self._repeated} more steps"
            self._print(f"  the same in {steps}, to step {last.step}: scale {last.loss_scale:.10g} -> "
                        f"{last.next_loss_scale:.10g}")
        self._repeated = 0

    def _print(self, line: str) -> None:
        if self._verbose:
            print(line, flush=True)
