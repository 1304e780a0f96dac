"""Steps of the host feed that run together in one compiled call, where nobody needs control between them."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, overload

import keras
import numpy as np

from mixtrain import backend
from mixtrain.train.later import Later
from mixtrain.train.records import StepRecords
from mixtrain.train.stepper import Batch, CallResult, Group, Stepper

Call = Callable[[], CallResult]


@dataclasses.dataclass(frozen=True)
class Unread:
    """Batches alike that the compiled call of their steps reads itself.

    Attributes:
        batches: The backend's pass, whose next elements they are.
        count: How many.
    """

    batches: Any
    count: int

    def __len__(self) -> int:
        return self.count

    def run(self, stepper: Stepper) -> CallResult:
        """Run their steps.

        Raises:
            Exception: What reading a batch raised, or a step, after the steps before it.
        """
        before, started = stepper.steps_done(), time.perf_counter()
        try:
            result = stepper.loop(self.batches.iterator, self.count)
        except backend.LabelOutOfRange:
            raise
        except Exception as error:
            self.batches.raise_pending()
            _tell_place(error, stepper.steps_done() - before, self.count)
            raise
        stepper.steps_per_call.learn(time.perf_counter() - started, self.count)
        return result


@overload
def grouped(
    batches: Iterator[Batch], limit: Callable[[int], int], *, usual: Callable[[int], int] | None = None
) -> Iterator[Sequence[Batch]]: ...


@overload
def grouped(
    batches: Iterator[Batch],
    limit: Callable[[int], int],
    *,
    usual: Callable[[int], int] | None = None,
    unread: Callable[[int], int] | None,
) -> Iterator[Sequence[Batch] | Unread]: ...


def grouped(
    batches: Iterator[Batch],
    limit: Callable[[int], int],
    *,
    usual: Callable[[int], int] | None = None,
    unread: Callable[[int], int] | None = None,
) -> Iterator[Sequence[Batch] | Unread]:
    """Yield the batches in groups of neighbors that are alike.

    Args:
        batches: The batches of a pass; the backend's are read several at once where it can, those that are held are
            released together.
        limit: Asked at the start of a group, with the size of a batch in bytes: how many it may have.
        usual: Asked likewise: how many a group has where nothing ends it early; by default as many as it may have.
        unread: Asked likewise, where nobody but the compiled call of a group need see its batches.

    Raises:
        Exception: What reading a batch raised, after the batches before it were yielded.
    """
    waiting: list[Batch] = []
    failed: Exception | None = None
    known = size = getattr(batches, "element_bytes", None)
    released: Callable[[Sequence[Batch]], Sequence[Batch]] = getattr(batches, "released", lambda group: group)
    kept: Callable[[Batch], Batch] = getattr(batches, "kept", lambda batch: batch)
    while failed is None:
        most = 0 if size is None else limit(size)
        later = most if size is None or usual is None else usual(size)
        if known is not None and max(most, later) > 1:
            left = batches.leave(unread(size)) if unread and most > 1 else 0  # type: ignore
            if left:
                yield Unread(batches, left)
                continue
            together = batches.together(most, later)  # type: ignore[attr-defined]
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
            group[-1] = kept(group[-1])
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
        yield released(group)
    raise failed


def _batch_bytes(batch: Batch) -> int:
    """Return the size of a batch in memory."""
    columns = filter(_stackable, keras.tree.flatten(batch))
    return sum(one.nbytes if isinstance(one, np.ndarray) else backend.byte_count(one) for one in columns)


def until_overflow(
    stepper: Stepper, group: Sequence[Batch], *, counts: bool
) -> Iterator[tuple[Sequence[Batch], Callable[[Sequence[Batch]], Group | None]]]:
    """Run the steps of a group in one call that ends at a step that overflows, and those after it one by one.

    A second call for the others would be compiled for their number, and after an overflow there may well be another.

    Args:
        stepper: Runs the steps.
        group: Batches alike.
        counts: As for `Stepper.several`.

    Yields:
        ``(batches, run)``: a part of the group; and what returns its results, in place of `Stepper.several`, or None
        where each of its steps is still to run by itself.
    """
    found = stepper.several(group, until_overflow=True, counts=counts)
    ran = 0 if found is None else len(found.records)
    if ran:
        yield group if ran == len(group) else _First(group, ran), lambda part: found
    for index in range(ran, len(group)):
        yield [group[index]], lambda part: None


class _First(Sequence[Batch]):
    """The first batches of a group, each cut out of a stack only where it is looked at.

    Args:
        group: The group.
        count: How many.
    """

    def __init__(self, group: Sequence[Batch], count: int) -> None:
        self._group = group
        self._indices = range(count)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: Any) -> Any:
        return self._group[self._indices[index]]


def step_calls(
    stepper: Stepper, group: Sequence[Batch], run: Callable[[Sequence[Batch]], Group | None]
) -> Generator[tuple[Batch, Call], None, None]:
    """Run the steps of a group in one call; then yield (batch, call) for each, where a call returns the step's result.

    Where the group fails it is as if it had not run, and each call runs its step, so that the error comes at the step
    that raises it.

    Args:
        stepper: Runs the steps.
        group: Batches alike.
        run: Runs them in one call, as `Stepper.several`. Where it tells the optimizer's count of updates, which
            schedules go by, it is each step's own while that is called.
    """
    counter = stepper.counter
    found = run(group)
    if found is None:
        for batch in group:
            yield batch, functools.partial(stepper.step, batch)
        return
    counts = [] if found.counts is None else list(backend.Stacked(found.counts))

    def call(index: int, result: CallResult) -> CallResult:
        if counts:
            backend.store(counter, counts[index])
        return result

    told = 0
    try:
        if counts:
            backend.store(counter, found.count_before)
        results = map(CallResult, found.records.each(), found.outputs)
        for told, (batch, result) in enumerate(zip(group, results, strict=True)):
            yield batch, functools.partial(call, told, result)
    finally:
        # A callback may have raised before it was told of the last step.
        if counts and told < len(counts) - 1:
            backend.store(counter, counts[-1])


def run_group(
    stepper: Stepper, group: Sequence[Batch], run: Callable[[Sequence[Batch]], Group | None]
) -> CallResult:
    """Run the steps of a group where no callback listens to steps.

    Args:
        stepper: Runs the steps.
        group: Batches alike.
        run: Runs them in one call, as `Stepper.several`.
    """
    found = run(group)
    if found is not None:
        return CallResult(found.records, Later(lambda: found.outputs[-1]))
    results = []
    for index, batch in enumerate(group):
        try:
            results.append(stepper.step(batch))
        except Exception as error:
            if isinstance(error, backend.LabelOutOfRange):
                error.index += index
            else:
                _tell_place(error, index, len(group))
            raise
    return CallResult(StepRecords.joined(result.records for result in results), results[-1].outputs)


def _tell_place(error: Exception, index: int, count: int) -> None:
    if index:
        error.add_note(f"Raised {index} steps after the first of the {count} that run together.")


def _read(batches: Iterator[Batch]) -> list[Batch]:
    batch = next(batches, None)
    return [] if batch is None else [batch]


def _form(batch: Batch) -> Any:
    """Return what batches that can be stacked have in common; None for one that cannot be."""
    columns = keras.tree.flatten(batch)
    if not all(map(_stackable, columns)):
        return None
    return [(tuple(column.shape), column.dtype) for column in columns], [type(column) for column in batch]


def _stackable(column: Any) -> bool:
    """Whether a part of a batch is a tensor, or an array that is held until it becomes one."""
    return isinstance(column, np.ndarray) and column.dtype.kind not in "USO" or backend.is_tensor(column)
