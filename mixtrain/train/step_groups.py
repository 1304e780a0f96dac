"""Group steps of the host feed that run in one compiled call, where nothing needs control between them."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend
from mixtrain.train.later import Later
from mixtrain.train.records import StepRecords
from mixtrain.train.stepper import CallResult, Group, StepCall, Stepper
from mixtrain.typing import Batch, Tensor


@dataclasses.dataclass(frozen=True)
class StreamedGroup:
    """Batches of equal shapes that the compiled call of their steps reads itself.

    Attributes:
        batches: The backend's pass; the group is its next elements.
        count: Number of batches.
    """

    batches: Any
    count: int

    def __len__(self) -> int:
        return self.count

    def run(self, stepper: Stepper) -> CallResult:
        """Run the steps. Raises: Exception raised by reading a batch or by a step; the steps before it have run."""
        first, started = stepper.steps_done(), time.perf_counter()
        try:
            result = stepper.loop(self.batches.iterator, self.count)
        except backend.RefusedBatch:
            raise
        except Exception as error:
            self.batches.raise_pending()
            _add_position_note(error, stepper.steps_done() - first, self.count)
            raise
        stepper.steps_per_call.learn(time.perf_counter() - started, self.count)
        return result


def grouped(
    batches: Iterator[Batch], limit: Callable[[int], int], *, usual: Callable[[int], int] | None = None,
    streamed: Callable[[int], int] | None = None,
) -> Iterator[Sequence[Batch] | StreamedGroup]:
    """Yield the batches in groups of consecutive batches with equal shapes.

    `batches`: The batches of a pass. A backend reads several at once where it can; `HeldBatches` become tensors
    together. `limit`: Maximum number of batches in the next group, given the size of a batch in bytes. `usual`:
    Likewise, the number of batches in a group that nothing ends early; by default that of `limit`. `streamed`: Likewise
    as `limit`, for groups whose batches only the compiled call needs to see.

    Raises: Exception raised by reading a batch, after the batches before it were yielded.
    """
    pending: list[Batch] = []  # A batch that was read, but does not fit the group before it.
    failure: Exception | None = None
    element_bytes = batch_bytes = getattr(batches, "element_bytes", None)
    to_tensors: Callable[[Sequence[Batch]], Sequence[Batch]] = getattr(batches, "to_tensors", lambda group: group)
    copied: Callable[[Batch], Batch] = getattr(batches, "copied", lambda batch: batch)
    while failure is None:
        max_size = 0 if batch_bytes is None else limit(batch_bytes)
        next_size = max_size if batch_bytes is None or usual is None else usual(batch_bytes)
        if element_bytes is not None and max(max_size, next_size) > 1:
            count = batches.reserve(streamed(batch_bytes)) if streamed and max_size > 1 else 0  # type: ignore
            if count:
                yield StreamedGroup(batches, count)
                continue
            stacked = batches.take_stacked(max_size, next_size)  # type: ignore[attr-defined]
            if stacked is not None:
                yield stacked
                continue
        group = pending or _read(batches)
        pending = []
        if not group:
            return
        if batch_bytes is None:
            batch_bytes = _batch_bytes(group[0])
            max_size = limit(batch_bytes)
        spec = _batch_spec(group[0]) if max_size > 1 else None
        while spec is not None and len(group) < max_size and not pending:
            # The dataset may write its next batch into the same arrays.
            group[-1] = copied(group[-1])
            try:
                following = _read(batches)
            except Exception as error:
                # Raised once the batches before it were yielded.
                failure = error
                break
            if not following:
                break
            if _batch_spec(following[0]) == spec:
                group += following
            else:
                pending = following
        yield to_tensors(group)
    raise failure


def _batch_bytes(batch: Batch) -> int:
    """Return the size of a batch in memory."""
    columns = filter(_is_stackable, keras.tree.flatten(batch))
    return sum(value.nbytes if isinstance(value, np.ndarray) else backend.byte_count(value) for value in columns)


def until_overflow(
    stepper: Stepper, group: Sequence[Batch], *, counts: bool
) -> Iterator[tuple[Sequence[Batch], Callable[[Sequence[Batch]], Group | None]]]:
    """Run the steps of a group in one call that ends at a step that overflows, and those after it one by one.

    A second call for the others would be compiled for their number, and after an overflow there may well be another.

    `stepper`: Runs the steps. `group`: Batches of equal shapes. `counts`: As for `Stepper.several`.

    Yields:
        ``(batches, run)``: a part of the group, and a function like `Stepper.several` that returns its results, or None
        if each of its steps is still to run by itself.
    """
    result = stepper.several(group, until_overflow=True, counts=counts)
    ran = 0 if result is None else len(result.records)
    if ran:
        yield group if ran == len(group) else _Prefix(group, ran), lambda part: result
    for index in range(ran, len(group)):
        yield [group[index]], lambda part: None


class _Prefix(Sequence[Batch]):
    """The first `count` batches of a group, which may be a stack: a batch is sliced only when it is read."""

    def __init__(self, group: Sequence[Batch], count: int) -> None:
        self._group = group
        self._indices = range(count)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: Any) -> Any:
        return self._group[self._indices[index]]


def step_calls(
    stepper: Stepper, group: Sequence[Batch], run: Callable[[Sequence[Batch]], Group | None]
) -> Generator[StepCall, None, None]:
    """Run the steps of a group in one call; then yield a call for each step, which returns the step's result.

    A group that fails is undone, and each call runs its own step, so that the step that fails raises the error.

    `stepper`: Runs the steps. `group`: Batches of equal shapes. `run`: Runs them in one call, as `Stepper.several`. If
    it returns the optimizer's counts of updates, on which schedules depend, each call sets the count of its own step.
    """
    counter = stepper.counter
    result = run(group)
    if result is None:
        for batch in group:
            yield StepCall(functools.partial(stepper.step, batch), batch=batch)
        return
    counts = [] if result.counts is None else list(backend.Stacked(result.counts))

    def call(index: int, step_result: CallResult) -> CallResult:
        if counts:
            backend.store(counter, counts[index])
        return step_result

    index = 0
    try:
        if counts:
            backend.store(counter, result.count_before)
        step_results = map(CallResult, result.records.each(), result.outputs)
        for index, (batch, step_result) in enumerate(zip(group, step_results, strict=True)):
            yield StepCall(functools.partial(call, index, step_result), batch=batch)
    finally:
        # All steps have run, even if a callback raises before the last call.
        if counts and index < len(counts) - 1:
            backend.store(counter, counts[-1])


def run_group(stepper: Stepper, group: Sequence[Batch], run: Callable[[Sequence[Batch]], Group | None]) -> CallResult:
    """Run the steps of a group, where no callback has step hooks.

    `stepper`: Runs the steps. `group`: Batches of equal shapes. `run`: Runs them in one call, as `Stepper.several`.
    """
    result = run(group)
    if result is not None:
        return CallResult(result.records, Later(lambda: result.outputs[-1]))
    results = []
    for index, batch in enumerate(group):
        try:
            results.append(stepper.step(batch))
        except Exception as error:
            if isinstance(error, backend.RefusedBatch):
                error.index += index
            else:
                _add_position_note(error, index, len(group))
            raise
    return CallResult(StepRecords.joined(result.records for result in results), results[-1].outputs)


def _add_position_note(error: Exception, index: int, count: int) -> None:
    if index:
        error.add_note(f"Raised {index} steps after the first of the {count} that run together.")


def _read(batches: Iterator[Batch]) -> list[Batch]:
    batch = next(batches, None)
    return [] if batch is None else [batch]


def _batch_spec(batch: Batch) -> Any:
    """Return the shapes, dtypes and types of a batch, equal for batches that can be stacked; None if it cannot be."""
    columns = keras.tree.flatten(batch)
    if not all(map(_is_stackable, columns)):
        return None
    return [(tuple(column.shape), column.dtype) for column in columns], [type(column) for column in batch]


def _is_stackable(column: Tensor) -> bool:
    """Whether a part of a batch is a tensor, or an array that becomes one."""
    return isinstance(column, np.ndarray) and column.dtype.kind not in "USO" or backend.is_tensor(column)
