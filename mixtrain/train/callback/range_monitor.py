"""`RangeMonitor`: how activations and gradients lie in half and float8 formats, sampled every N steps."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.diagnostics.ranges import RangeRecords
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.checkpoint_files import make_folder
from mixtrain.train.event_writer import EventWriter
from mixtrain.train.run_context import RunContext

_WHERE = "RangeMonitor"


class RangeMonitor(Callback):
    """Counts what float16, bfloat16 and float8 make of each layer's activations and gradients.

    At the first step and each `every`-th after it, a second compiled program runs the batch forward and backward in
    float32, without training, and counts: zeros, values that are flushed to zero, subnormal, normal and too large ones,
    in each format, and how many have which exponent. Gradients are counted as they are before unscaling, at the run's
    loss scale. All other steps run as without it.

    Args:
        every: Steps from one sample to the next.
        values: How many values of a tensor are counted at most, evenly spaced, so that large tensors do not cost more;
            None for all. The largest magnitude is that of all of them in any case.
        summary_dir: A folder for TensorBoard, which gets a histogram of exponents for each tensor; None for none.

    Attributes:
        records: The `RangeRecords` of the last run: the counts of its samples, added up.
        samples: How many there were.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: A number is below 1.

    Example:
        >>> import numpy as np, mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(1, 1, weight_init="ones", has_bias=False)
        >>> model = mixtrain.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.0))
        >>> monitor = RangeMonitor(every=10)
        >>> batches = [(np.full((1, 1), 1e-9, np.float32), np.zeros((1, 1), np.float32))]
        >>> history = model.train(1, batches, callbacks=[monitor], verbose=0)
        >>> monitor.records.row("activation", "").counts("float16")
        FormatCounts(zero=0, flushed=1, subnormal=0, normal=0, overflow=0)
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
        self._loss_scale: Any = 1.0

    @property
    def loss_scale(self) -> float:
        """The loss scale at the last sample."""
        return float(self._loss_scale)

    def on_train_begin(self, run_context: RunContext) -> None:
        """Forget an earlier run."""
        self.records, self.samples = RangeRecords(), 0
        super().on_train_begin(run_context)

    def on_train_sample(self, run_context: RunContext) -> None:
        """Count the values of a batch."""
        arguments = run_context.original_args()
        self._loss_scale, found = arguments.measure_ranges(self._values)
        self.records += found
        self.samples += 1
        if self._folder is not None:
            _write(EventWriter(self._folder, ".ranges"), found, arguments.cur_step_num)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the counts, one line a tensor."""
        self.records.to_csv(path)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the counts and histograms."""
        self.records.to_json(path)


def _write(writer: EventWriter, records: RangeRecords, step: int) -> None:
    """Write histograms of exponents."""
    for row in records:
        found: Any = row.exponents()
        if found:
            buckets = np.array([[exponent, exponent + 1, count] for exponent, count in found.items()], np.float64)
            writer.buckets(f"log2 {row.kind}/{row.path}", buckets, step)
    writer.close()
