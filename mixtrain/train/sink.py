"""`SinkData`: a dataset that compiled calls read themselves, and how far they have read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mixtrain import backend, context
from mixtrain.train.feed import Feed
from mixtrain.train.step_groups import grouped, run_group, until_overflow
from mixtrain.train.stepper import Batch, CallResult, Stepper


class SinkData:
    """The backend's iterator over pass after pass of a dataset.

    Args:
        feed: The dataset.
        skip: Batches that are left out at first: those that earlier epochs took of the pass it begins in.

    Attributes:
        size: Number of batches in a pass.

    Raises:
        ValueError: The dataset does not know its size.
    """

    def __init__(self, feed: Feed, skip: int) -> None:
        if not feed.size:
            raise ValueError(
                "Model.train: with dataset_sink_mode=True the dataset must know its size; got one of unknown size. "
                "Write dataset_sink_mode=False, or give the dataset a length."
            )
        self._feed = feed
        self._skip = skip
        self.size = feed.size
        self._left = self.size - skip
        self._iterator: Any = None
        # Where steps that overflow are calls of their own: batches in groups, and the parts of the present group.
        self._groups: Iterator[Sequence[Batch]] | None = None
        self._parts: Iterator[Any] = iter(())
        self._most = 1

    def run(
        self,
        stepper: Stepper,
        step: Callable[[Batch], CallResult],
        steps: int,
        unwatched: int,
        epoch: int,
        *,
        until_overflow: bool = False,
    ) -> tuple[Batch | None, CallResult]:
        """Run steps in one compiled call, not beyond the end of a pass.

        Args:
            stepper: Runs them.
            step: Runs one by itself.
            steps: How many at most.
            unwatched: How many may run before one that may have to end the run; that one is run by itself, so that its
                number is right and its batch at hand.
            epoch: Number of the epoch, for errors.
            until_overflow: Whether a step that overflows is a call of its own, the state as it found it. Batches then
                come to Python, in groups.

        Returns:
            The batch of a step that was run by itself, else None; and the result of the call.

        Raises:
            EndOfStream: The dataset ended before its own size.
        """
        try:
            if self._iterator is None:
                self._iterator = self._feed.graph_iterator()
                for _ in range(self._skip):
                    next(self._iterator)
            self._left = self._left or self.size
            count = min(steps, self._left, unwatched)
            if until_overflow:
                batch, result = self._run_part(stepper, step, count)
            else:
                batch = None if count else next(self._iterator)
                result = step(batch) if batch else stepper.loop(self._iterator, count)
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

    def _run_part(
        self, stepper: Stepper, step: Callable[[Batch], CallResult], count: int
    ) -> tuple[Batch | None, CallResult]:
        """Run the next part of the present group of batches; of a new group, of at most `count`, where it is done."""
        part = next(self._parts, None)
        if part is None:
            if self._groups is None:
                self._groups = grouped(self._iterator, lambda size: min(self._most, stepper.pace.steps(size)))
            self._most = max(count, 1) if context.graph_mode() else 1
            group = next(self._groups)
            self._parts = until_overflow(stepper, group)
            part = next(self._parts)
        batches, run = part
        if len(batches) == 1:
            return batches[0], step(batches[0])
        return None, run_group(stepper, batches, run)

    def close(self) -> None:
        """Give the iterator back: found by the garbage collector, or at exit, its source may be gone before it."""
        self._iterator = self._groups = None
        self._parts = iter(())
