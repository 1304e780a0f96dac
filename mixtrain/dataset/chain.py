"""Transforms of a row as one compiled function, and the streams of rows and blocks that run through it."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mixtrain import backend, checks
from mixtrain.dataset import config
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.parallel import each_in_order, in_order
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
        self._compiled = backend.RowFunction(self._parts(moves), parallel=max(2, self._workers))

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
        if self._openings:
            items = each_in_order(self._open, items, self._workers)
        return self.run(_grouped(items, count, together=self._together), seed)

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
        return [
            backend.RowPart(functools.partial(self._by_block if whole else self._by_row, tuple(run)), whole)
            for whole, run in itertools.groupby(moves, key=lambda move: move.operation.by_block)
        ]

    def _by_row(self, moves: tuple[_Move, ...], seed: Any, *values: Any) -> tuple[Any, ...]:
        row = dict(zip(self.touched, values, strict=True))
        for move in moves:
            own = backend.row_random.fold(seed, move.number)
            for position, name in zip(move.step.positions, move.step.names, strict=True):
                with backend.speaking_of(f'map, column "{name}"'):
                    row[position] = move.operation.graph(row[position], own)
        return tuple(row[position] for position in self.touched)

    def _by_block(self, moves: tuple[_Move, ...], *values: Any) -> tuple[Any, ...]:
        block = dict(zip(self.touched, values, strict=True))
        for move in moves:
            for position, name in zip(move.step.positions, move.step.names, strict=True):
                with backend.speaking_of(f'map, column "{name}"'):
                    block[position] = move.operation.block(block[position])
        return tuple(block[position] for position in self.touched)


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


def _with_keys(items: Iterator[tuple[Any, Row]], seed: int) -> Iterator[tuple[Any, np.ndarray, Row]]:
    start = 0
    for kept, block in items:
        count = len(block[0])
        yield kept, keys_of(seed, start, count), block
        start += count


def _grouped(items: Iterator[tuple[Any, Row]], count: int, *, together: bool) -> Iterator[tuple[list[Any], Row]]:
    """Yield rows of the same dtypes and sizes stacked, at first `count`, for which the reader waits, then more."""
    limit = min(count, _MAX_ROWS)
    whole = count * max(1, _MAX_ROWS // count)
    missing = whole  # Rows until a group must end.
    room = 1
    group: list[tuple[Any, Row]] = []
    try:
        for item in items:
            if group and (len(group) >= room or not _alike(group[0][1], item[1])):
                yield _stacked(group)
                missing = missing - len(group) or whole
                limit = min(2 * limit, _MAX_ROWS)
                group = []
            if not group:
                size = max(1, sum(value.nbytes for value in item[1]))
                room = max(1, min(limit, missing, _MAX_BYTES // size)) if together else 1
            group.append(item)
    except Exception:
        if group:
            yield _stacked(group)  # The rows before the one that failed.
        raise
    if group:
        yield _stacked(group)


def _alike(first: Row, row: Row) -> bool:
    return all(
        one.shape == other.shape and one.dtype == other.dtype for one, other in zip(first, row, strict=True)
    )


def _stacked(group: list[tuple[Any, Row]]) -> tuple[list[Any], Row]:
    kept, rows = zip(*group, strict=True)
    return list(kept), tuple(np.stack(values) for values in zip(*rows, strict=True))
