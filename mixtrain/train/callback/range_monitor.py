"""`RangeMonitor`: the ranges of activations and gradients in half and float8 formats, sampled every N steps."""

from __future__ import annotations

import collections
import os
from typing import Any, Final

import numpy as np

from mixtrain import checks
from mixtrain.diagnostics.ranges import RangeRecords
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.checkpoint_files import make_folder
from mixtrain.train.event_writer import EventWriter
from mixtrain.train.run_context import RunContext

_WHERE = "RangeMonitor"
_LATEST: Final = 8


class RangeMonitor(Callback):
    """Counts how each layer's activations and gradients fit float16, bfloat16 and float8.

    At the first step and each `every`-th after it, a second compiled program runs the batch forward and backward in
    float32, without training. It counts, for each format, zeros, values that are flushed to zero, subnormal, normal and
    too large values, and how many values have each exponent. Gradients are counted before unscaling, at the loss scale
    of the run. Other steps run unchanged.

    Args:
        every: Steps between samples.
        values: Maximum number of values counted per tensor, evenly spaced, to bound the cost of large tensors; None for
            all. The largest magnitude is that of all values in any case.
        summary_dir: A TensorBoard folder for a histogram of exponents for each tensor; None for none.

    Attributes:
        records: The `RangeRecords` of the last run: the sum of the counts of its samples.
        samples: How many samples there were.
        latest: The last eight of them, each with the number of its step: how a layer developed before an overflow.

    Raises: TypeError if an argument has the wrong type. ValueError if a number is below 1.

    Example: ``monitor = RangeMonitor(every=10)``, after a run ``monitor.records.underflowing("float16")``.
    """

    def __init__(
        self, every: int = 50, *, values: int | None = 2**11, summary_dir: str | os.PathLike[str] | None = None
    ) -> None:
        super().__init__()
        self.sample_every = checks.integer(_WHERE, "every", every, at_least=1, example=50)
        if values is not None:
            checks.integer(_WHERE, "values", values, at_least=1, example=2**11)
        self._values = values
        self._folder = None if summary_dir is None else make_folder(_WHERE, summary_dir)
        self.records = RangeRecords()
        self.samples = 0
        self.latest: collections.deque[tuple[int, RangeRecords]] = collections.deque(maxlen=_LATEST)
        self._loss_scale: Any = 1.0

    @property
    def loss_scale(self) -> float:
        """The loss scale at the last sample."""
        return float(self._loss_scale)

    def on_train_begin(self, run_context: RunContext) -> None:
        """Reset the records of an earlier run."""
        self.records, self.samples = RangeRecords(), 0
        self.latest.clear()
        super().on_train_begin(run_context)

    def on_train_sample(self, run_context: RunContext) -> None:
        arguments = run_context.original_args()
        self._loss_scale, records = arguments.measure_ranges(self._values)
        self.records += records
        self.latest.append((arguments.cur_step_num, records))
        self.samples += 1
        if self._folder is not None:
            _write(EventWriter(self._folder, ".ranges"), records, arguments.cur_step_num)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the counts, one line per tensor."""
        self.records.to_csv(path)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the counts and histograms."""
        self.records.to_json(path)


def _write(writer: EventWriter, records: RangeRecords, step: int) -> None:
    for row in records:
        exponents = row.exponents()
        if exponents:
            buckets = np.array([[exponent, exponent + 1, count] for exponent, count in exponents.items()], np.float64)
            writer.buckets(f"log2 {row.kind}/{row.path}", buckets, step)
    writer.close()
