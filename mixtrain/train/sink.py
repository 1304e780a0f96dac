"""`SinkData`: a dataset that compiled calls read themselves, and how far they have read it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mixtrain import backend
from mixtrain.train.feed import Feed
from mixtrain.train.stepper import Batch, CallResult, Stepper


class SinkData:
    """The backend's iterator over pass after pass of a dataset.

    Args:
        feed: The dataset.
        skip: Batches that are left out at first: those that earlier epochs took of the pass it begins in.
        epochs: How many epochs are to come; no pass is begun that they do not need.
        sink_size: How many batches an epoch has; -1 for a pass.

    Attributes:
        size: Number of batches in a pass.
        epoch_size: Number of batches in an epoch.

    Raises:
        ValueError: The dataset does not know its size.
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
        self._left = self.size - skip
        self._iterator: Any = None

    def run(
        self,
        stepper: Stepper,
        step: Callable[[Batch], CallResult],
        steps: int,
        unwatched: int,
        epoch: int,
        *,
        look: Callable[[Batch], None] | None = None,
        at_overflow: Callable[[Batch, CallResult], CallResult] | None = None,
    ) -> tuple[Batch | None, CallResult]:
        """Run steps in one compiled call, not beyond the end of a pass.

        Args:
            stepper: Runs them.
            step: Runs one by itself.
            steps: How many at most.
            unwatched: How many may run before one that may have to end the run; that one is run by itself, so that its
                number is right and its batch at hand.
            epoch: Number of the epoch, for errors.
            look: Given the batch of the first step before several run, where the backend can show it.
            at_overflow: Where a step that overflows is to be the last of its call: takes its batch and the result of
                the call, and returns the result that counts.

        Returns:
            The batch of the last step, where it was run by itself or with `at_overflow`, else None; and the result of
            the call.

        Raises:
            EndOfStream: The dataset ended before its own size.
        """
        try:
            if self._iterator is None:
                self._iterator = self._feed.graph_iterator(self._passes)
                for _ in range(self._skip):
                    next(self._iterator)
            self._left = self._left or self.size
            count = min(steps, self._left, unwatched)
            if look is not None and count:
                look(self._iterator.peek(count))
            batch: Batch | None = None
            if not count:
                batch = next(self._iterator)
                result = step(batch)
            elif at_overflow is not None:
                batch, result = stepper.loop_until_overflow(self._iterator, count)
                if result.records.overflow[-1]:
                    result = at_overflow(batch, result)
            else:
                result = stepper.loop(self._iterator, count)
        except backend.LabelOutOfRange:
            raise
        except Exception:
            try:
                self._feed.raise_pending()
            except Exception as error:
                error.add_note(f"Raised by the training dataset in epoch {epoch}.")
                raise
            raise
        self._left -= len(result.records)
        return batch, result

    def close(self) -> None:
        """Give the iterator back: found by the garbage collector, or at exit, its source may be gone before it."""
        self._iterator = None
