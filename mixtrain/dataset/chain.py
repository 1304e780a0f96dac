"""Transforms of a row as one compiled function, and the streams of rows and blocks that run through it."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mixtrain import backend, checks
from mixtrain.dataset import config
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.parallel import before_failure, each_in_order, in_order
from mixtrain.dataset.stage import Row
from mixtrain.dataset.transforms.operation import TensorOperation

_PLACE = 1 << 20  # Beyond the places that stages below give out.
_MAX_ROWS = 64
_MAX_BYTES = 1 << 20
_STEPS = tuple(np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclasses.dataclass(frozen=True)
class Step:
    """Transforms applied one after the other to each of some columns, with the same random numbers.

    Attributes:
        operations: The transforms.
        positions: Which columns.
        names: Their names, for messages.
    """

    operations: tuple[TensorOperation, ...]
    positions: tuple[int, ...]
    names: tuple[str, ...]


class Chain:
    """Steps compiled together.

    Args:
        steps: In order.
        workers: How many rows or blocks are under way at a time; None: the setting, at most one for each processor.
    """

    def __init__(self, steps: Sequence[Step], workers: int | None = None) -> None:
        self.steps = tuple(steps)
        self.touched = tuple(sorted({place for step in steps for place in step.positions}))
        self._openings, moves = _divided(self.steps)
        self._together = all(move.operation.same_size for move in moves)
        self.same_size = self._together and not self._openings
        self._workers = min(config.get_num_parallel_workers(), backend.processors()) if workers is None else workers
        opened = {position for move in self._openings for position in move.step.positions}
        files = [place for place, position in enumerate(self.touched) if position in opened]
        self._compiled = backend.RowFunction(self._parts(moves), parallel=max(2, self._workers), files=files)
        self._row_bytes = _MAX_BYTES  # Of a row when its files are open, the last that was seen.

    def run(self, items: Iterator[tuple[Any, Row]], seed: int) -> Iterator[tuple[Any, Row]]:
        """Yield the results for blocks of the touched columns, each with what came with it."""
        return in_order(self._call, _with_keys(items, seed), self._workers)

    def run_rows(self, items: Iterator[tuple[Any, Row]], seed: int) -> Iterator[tuple[Any, Row]]:
        """Yield the results for single rows, each with what came with it; rows of one size are run in blocks."""
        for kept, results in self.run_groups(items, seed, 1):
            if len(kept) == 1:
                yield kept[0], tuple(column[0, ...] for column in results)
                continue
            for index, item in enumerate(kept):
                yield item, tuple(np.array(column[index]) for column in results)

    def run_groups(self, items: Iterator[tuple[Any, Row]], seed: int, count: int) -> Iterator[tuple[list[Any], Row]]:
        """Yield the results for single rows as they were run: some stacked, with the list of what came with them.

        A group ends where `count` rows do, or a multiple of them.
        """
        if self._openings and self._compiled.opens:
            return self._run_files(items, seed, count)
        if self._openings:
            items = each_in_order(self._open, items, self._workers)
        return self.run(map(_stacked, self._alike_groups(items, count)), seed)

    def _alike_groups(self, items: Iterator[tuple[Any, Row]], count: int) -> Iterator[list[tuple[Any, Row]]]:
        return _grouped(items, count, _form, _bytes_of if self._together else lambda row: _MAX_BYTES)

    def _run_files(self, items: Iterator[tuple[Any, Row]], seed: int, count: int) -> Iterator[tuple[list[Any], Row]]:
        """Yield what `run_groups` does for rows with files, of which each group is opened and run in one thread."""
        groups = _grouped(items, count, lambda row: None, lambda row: self._row_bytes)
        for results, error in in_order(self._call_files, _with_keys(map(_listed, groups), seed), self._workers):
            yield from results
            if error is not None:
                raise error

    def _call_files(self, item: tuple[list[Any], np.ndarray, Any]) -> tuple[Sequence[Any], Exception | None]:
        kept, keys, columns = item
        results = self._compiled.call_files(keys, columns)
        if results is not None:
            return [(kept, results)], None
        return before_failure(self._open_and_call, list(zip(kept, keys, zip(*columns, strict=True), strict=True)))

    def _open_and_call(self, group: list[tuple[Any, Any, Row]]) -> list[tuple[list[Any], Row]]:
        """Return the results for rows with files, each with its key, as `run_groups` does."""
        opened = self._open([(item, item[2]) for item in group])
        self._row_bytes = max(_bytes_of(row) for _, row in opened)
        called = []
        for part in self._alike_groups(iter(opened), len(opened)):
            triples, block = _stacked(part)
            kept, keys, _ = zip(*triples, strict=True)
            called.append(self._call((list(kept), np.array(keys), block)))
        return called

    def _open(self, items: list[tuple[Any, Row]]) -> list[tuple[Any, Row]]:
        """Return rows with the contents of files decoded."""
        kept, rows = zip(*items, strict=True)
        columns: dict[int, Sequence[np.ndarray]] = dict(zip(self.touched, zip(*rows, strict=True), strict=True))
        for move in self._openings:
            for position, name in zip(move.step.positions, move.step.names, strict=True):
                with backend.speaking_of(f'map, column "{name}"'):
                    columns[position] = move.operation.open(columns[position])
        return list(zip(kept, zip(*columns.values(), strict=True), strict=True))

    def _call(self, item: tuple[Any, np.ndarray, Row]) -> tuple[Any, Row]:
        kept, keys, block = item
        for position, column in zip(self.touched, block, strict=True):
            if column.dtype.kind not in "biufV":
                names = {p: n for step in self.steps for p, n in zip(step.positions, step.names, strict=True)}
                raise checks.fail_type(
                    f'map, column "{names[position]}"', "transforms need numbers", column[0], "a function that reads it"
                )
        return kept, self._compiled(keys, block)

    def _parts(self, moves: Sequence[_Move]) -> list[backend.RowPart]:
        """Return the transforms as functions of rows and, where neighbors take them, of blocks."""
        parts = []
        for whole, run in itertools.groupby(moves, key=lambda move: move.operation.by_block):
            moved = tuple(run)
            positions = tuple(sorted({place for move in moved for place in move.step.positions}))
            function = functools.partial(self._by_block if whole else self._by_row, moved, positions)
            parts.append(backend.RowPart(function, whole, tuple(map(self.touched.index, positions))))
        return parts

    def _by_row(
        self, moves: tuple[_Move, ...], positions: tuple[int, ...], seed: Any, *values: Any
    ) -> tuple[Any, ...]:
        row = dict(zip(positions, values, strict=True))
        for move in moves:
            own = backend.row_random.fold(seed, move.number)
            for position, name in zip(move.step.positions, move.step.names, strict=True):
                with backend.speaking_of(f'map, column "{name}"'):
                    row[position] = move.operation.graph(row[position], own)
        return tuple(row[position] for position in positions)

    def _by_block(self, moves: tuple[_Move, ...], positions: tuple[int, ...], *values: Any) -> tuple[Any, ...]:
        block = dict(zip(positions, values, strict=True))
        for move in moves:
            for position, name in zip(move.step.positions, move.step.names, strict=True):
                with backend.speaking_of(f'map, column "{name}"'):
                    block[position] = move.operation.block(block[position])
        return tuple(block[position] for position in positions)


@dataclasses.dataclass(frozen=True)
class _Move:
    number: int
    operation: TensorOperation
    step: Step


def _divided(steps: Sequence[Step]) -> tuple[list[_Move], list[_Move]]:
    """Return the transforms that open files, where they come first for their columns, and all others."""
    openings: list[_Move] = []
    others: list[_Move] = []
    seen: set[int] = set()
    for step in steps:
        for operation in step.operations:
            move = _Move(len(openings) + len(others), operation, step)
            first = operation.opens and seen.isdisjoint(step.positions)
            seen.update(step.positions)
            (openings if first else others).append(move)
    return openings, others


def seed_of(pass_seed: PassSeed, depth: int) -> int:
    """Return the seed of the transforms of one pass, `depth` stages above the source."""
    return int(pass_seed.into(_PLACE + depth).generator().integers(2**63))


def keys_of(seed: int, start: int, count: int) -> np.ndarray:
    """Return one int64 for each row from number `start` on; the same row has the same number in any block."""
    value = np.uint64(seed) + np.arange(start + 1, start + count + 1, dtype=np.uint64) * _STEPS[0]
    value = (value ^ (value >> np.uint64(30))) * _STEPS[1]
    value = (value ^ (value >> np.uint64(27))) * _STEPS[2]
    return (value ^ (value >> np.uint64(31))).view(np.int64)


def _with_keys(items: Iterator[tuple[Any, Any]], seed: int) -> Iterator[tuple[Any, np.ndarray, Any]]:
    start = 0
    for kept, block in items:
        count = len(block[0])
        yield kept, keys_of(seed, start, count), block
        start += count


def _grouped(
    items: Iterator[tuple[Any, Row]],
    count: int,
    form_of: Callable[[Row], Any],
    size_of: Callable[[Row], int],
) -> Iterator[list[tuple[Any, Row]]]:
    """Yield groups of rows, at first of `count`, for which the reader waits, then of more.

    Args:
        items: The rows, each with what came with it.
        count: Where this number of rows ends, or a multiple of it, a group ends too.
        form_of: Gives what is the same for all rows of a group.
        size_of: Gives the bytes that a row takes.
    """
    limit = min(count, _MAX_ROWS)
    whole = count * max(1, _MAX_ROWS // count)
    missing = whole  # Rows until a group must end.
    size = 1
    group: list[tuple[Any, Row]] = []
    form = None
    try:
        for item in items:
            own = form_of(item[1])
            if group and (len(group) >= size or own != form):
                yield group
                missing = missing - len(group) or whole
                limit = min(2 * limit, _MAX_ROWS)
                group = []
            if not group:
                form = own
                size = max(1, min(limit, missing, _MAX_BYTES // max(1, size_of(item[1]))))
            group.append(item)
    except Exception:
        if group:
            yield group  # The rows before the one that failed.
        raise
    if group:
        yield group


def _form(row: Row) -> list[Any]:
    return [(value.shape, value.dtype) for value in row]


def _bytes_of(row: Row) -> int:
    return sum(value.nbytes for value in row)


def _listed(group: list[tuple[Any, Row]]) -> tuple[list[Any], Any]:
    """Return what came with the rows of a group, and their columns."""
    kept, rows = zip(*group, strict=True)
    return list(kept), tuple(zip(*rows, strict=True))


def _stacked(group: list[tuple[Any, Row]]) -> tuple[list[Any], Row]:
    kept, columns = _listed(group)
    return kept, tuple(map(np.stack, columns))
