"""`SinkData`: a dataset that compiled calls read themselves, and the position in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mixtrain import backend
from mixtrain.train.feed import Feed
from mixtrain.train.stepper import CallResult, Stepper
from mixtrain.typing import Batch


class SinkData:
    """The backend's iterator over repeated passes of a dataset.

    `feed`: The dataset. `skip`: Batches to skip at first: those that earlier epochs took of the first pass. `epochs`:
    Number of epochs to come; no pass begins that they do not need. `sink_size`: Number of batches in an epoch; -1 for a
    pass.

    Attributes:
        size: Number of batches in a pass.
        epoch_size: Number of batches in an epoch.

    Raises: ValueError if the dataset does not know its size.
    """

    def __init__(self, feed: Feed, skip: int, *, epochs: int, sink_size: int) -> None:
        if not feed.size:
            raise ValueError(
                "Model.train: with dataset_sink_mode=True the dataset must know its size; got one of unknown size. "
                "Write dataset_sink_mode=False, or give the dataset a length."
            )
        self._feed = feed
        self._skip = skip
        self.size = feed.size
        self.epoch_size = feed.size if sink_size == -1 else sink_size
        self._passes = math.ceil((skip + epochs * self.epoch_size) / self.size)
        self._remaining = self.size - skip  # In the present pass.
        self._iterator: Any = None

    def run(
        self, stepper: Stepper, step: Callable[[Batch], CallResult], steps: int, free_steps: int, epoch: int, *,
        before: Callable[[Batch], None] | None = None,
        at_overflow: Callable[[Batch, CallResult], CallResult] | None = None,
    ) -> tuple[Batch | None, CallResult]:
        """Run steps in one compiled call, not beyond the end of a pass.

        `stepper`: Runs the steps. `step`: Runs a single step. `steps`: Maximum number of steps. `free_steps`: How many
        may run before one that may have to end the run. That one runs by itself, so that its number and its batch are
        known. `epoch`: Number of the epoch, for errors. `before`: Called with the batch of the first step before it
        runs; several steps may run then only if the backend can show their batches. `at_overflow`: If a step that
        overflows must be the last of its call: takes its batch and the result of the call, and returns the result to
        use.

        Returns: The batch of the last step if it ran by itself or with `at_overflow`, else None; and the result of the
        call.

        Raises: EndOfStream if the dataset ended before its own size.
        """
        try:
            if self._iterator is None:
                self._iterator = self._feed.graph_iterator(self._passes)
                for _ in range(self._skip):
                    next(self._iterator)
            self._remaining = self._remaining or self.size
            count = min(steps, self._remaining, free_steps)
            if before is not None and count:
                before(self._iterator.peek(count))
            batch: Batch | None = None
            if not count:
                batch = next(self._iterator)
                if before is not None:
                    before(batch)
                result = step(batch)
            elif at_overflow is not None:
                batch, result = stepper.loop_until_overflow(self._iterator, count)
                if result.records.overflow[-1]:
                    result = at_overflow(batch, result)
            else:
                result = stepper.loop(self._iterator, count)
        except backend.RefusedBatch:
            raise
        except Exception:
            try:
                self._feed.raise_pending()
            except Exception as error:
                error.add_note(f"Raised by the training dataset in epoch {epoch}.")
                raise
            raise
        self._remaining -= len(result.records)
        return batch, result

    def close(self) -> None:
        """Release the iterator now: at garbage collection or exit, its source may be destroyed first."""
        self._iterator = None
