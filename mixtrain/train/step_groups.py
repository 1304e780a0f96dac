"""Steps of the host feed that run together in one compiled call, where nobody needs control between them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import keras

from mixtrain import backend
from mixtrain.train.records import StepRecords
from mixtrain.train.stepper import Batch, Group, Stepper

Call = Callable[[], StepRecords]


def grouped(batches: Iterator[Batch], limit: Callable[[int], int]) -> Iterator[Sequence[Batch]]:
    """Yield the batches in groups of neighbors that are alike.

    Args:
        batches: The batches of a pass; the backend's are read several at once where it can.
        limit: Asked at the start of a group, with the size of a batch in bytes: how many it may have.

    Raises:
        Exception: What reading a batch raised, after the batches before it were yielded.
    """
    waiting: list[Batch] = []
    failed: Exception | None = None
    known = size = getattr(batches, "element_bytes", None)
    while failed is None:
        most = 0 if size is None else limit(size)
        if known is not None and most > 1:
            together = batches.together(most)  # type: ignore[attr-defined]
            if together is not None:
                yield together
                continue
        group = waiting or _read(batches)
        waiting = []
        if not group:
            return
        if size is None:
            size = _batch_bytes(group[0])
            most = limit(size)
        form = _form(group[0]) if most > 1 else None
        while form is not None and len(group) < most and not waiting:
            try:
                following = _read(batches)
            except Exception as error:
                failed = error
                break
            if not following:
                break
            if _form(following[0]) == form:
                group += following
            else:
                waiting = following
        yield group
    raise failed


def _batch_bytes(batch: Batch) -> int:
    """Return the size of a batch in memory."""
    columns = keras.tree.flatten(batch)
    return sum(backend.byte_count(column) for column in columns if backend.is_tensor(column))


def replayed(
    stepper: Stepper, group: Sequence[Batch], follow: Callable[[StepRecords], StepRecords], *, show: bool
) -> Generator[tuple[Batch, Call], None, None]:
    """Yield (batch, call) for each step of a group; the first call runs them all, each returns one step's records.

    Where the reader stops in between, the network is put where it was after the steps that were called. A step that
    fails does so when it is called, with the steps before it done.

    Args:
        stepper: Runs the steps.
        group: Batches alike.
        follow: Called with the records of steps that have just run; returns them.
        show: Whether the optimizer's count of updates, which schedules go by, is each step's own while it is called.
    """
    results: list[tuple[StepRecords, Any]] = []
    counts: list[Any] = []
    undo: Callable[[], None] | None = None
    called = 0

    def call(index: int) -> StepRecords:
        nonlocal undo, called, counts
        found = _attempt(stepper, group) if index == 0 else None
        if found is not None:
            undo = found.undo
            follow(found.records)
            results.extend(zip(found.records.each(), found.outputs, strict=True))
            if show and found.counts is not None:
                counts = keras.ops.unstack(found.counts, len(group))
        called = index + 1
        if undo is None:
            return follow(stepper.step(group[index]))
        if counts:  # After the last step it is what the group left.
            backend.store(stepper.counter, counts[index])
        records, stepper.outputs = results[index]
        return records

    try:
        for index, batch in enumerate(group):
            yield batch, functools.partial(call, index)
    finally:
        if undo is not None and called < len(group):
            undo()
            for batch in group[:called]:
                stepper.step(batch)


def untold(stepper: Stepper, group: Sequence[Batch], follow: Callable[[StepRecords], StepRecords]) -> StepRecords:
    """Run the steps of a group that nobody is told of one by one; return their records.

    Args:
        stepper: Runs the steps.
        group: Batches alike.
        follow: As for `replayed`.
    """
    found = _attempt(stepper, group)
    if found is None:
        return StepRecords.joined([follow(_step(stepper, group, index)) for index in range(len(group))])
    stepper.outputs = found.outputs[-1]
    return follow(found.records)


def _step(stepper: Stepper, group: Sequence[Batch], index: int) -> StepRecords:
    """Run one step of a group by itself; an error of its labels knows which it is."""
    try:
        return stepper.step(group[index])
    except backend.LabelOutOfRange as error:
        error.index += index
        raise


def _attempt(stepper: Stepper, group: Sequence[Batch]) -> Group | None:
    """Run the steps of a group in one call; None, with nothing done, where that fails.

    One of them fails: step by step the error comes where it belongs. If it is the group that does not go, the next
    need not be tried.
    """
    try:
        return stepper.several(group)
    except Exception:
        stepper.pace.run_alone()
        return None


def _read(batches: Iterator[Batch]) -> list[Batch]:
    batch = next(batches, None)
    return [] if batch is None else [batch]


def _form(batch: Batch) -> Any:
    """Return what batches that can be stacked have in common; None for one that cannot be."""
    columns = keras.tree.flatten(batch)
    if not all(map(backend.is_tensor, columns)):
        return None
    return [(tuple(column.shape), column.dtype) for column in columns], [type(column) for column in batch]
