"""Transforms compiled into one function of a row, and run over streams of rows and blocks."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from mixtrain import backend, checks, data_backend
from mixtrain.boundary import to_tensors
from mixtrain.data_backend import row_random
from mixtrain.dataset import config
from mixtrain.dataset.parallel import adaptive_map, call_until_failure, ordered_map
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row
from mixtrain.dataset.transforms.operation import Seed, TensorOperation
from mixtrain.typing import Tensor

# A row, or columns of several rows, and what is returned along with its results.
RowInContext: TypeAlias = tuple[Any, Row]

_SEED_OFFSET = 1 << 20  # Above every index that the stages below fold into the seed of a pass.
_MAX_ROWS = 64
_MAX_BYTES = 1 << 20
# The increment and the two multipliers of the random number generator SplitMix64.
_SPLITMIX = tuple(np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclasses.dataclass(frozen=True)
class Step:
    """Transforms applied in sequence to each of some columns, with the same random numbers for each.

    Attributes:
        operations: The transforms.
        positions: Positions of the columns.
        names: Names of the columns, for messages.
    """

    operations: tuple[TensorOperation, ...]
    positions: tuple[int, ...]
    names: tuple[str, ...]


class Chain:
    """Steps compiled together.

    `steps`: The steps, in order. `workers`: How many rows or blocks are processed at a time; None: the setting, at most
    one for each processor.

    Attributes:
        positions: Positions of the columns that a step transforms.
        same_size: Whether rows of one size stay of one size.
    """

    def __init__(self, steps: Sequence[Step], workers: int | None = None) -> None:
        self.steps = tuple(steps)
        self.positions = tuple(sorted({position for step in steps for position in step.positions}))
        self._openers, others = _split_openers(self.steps)
        self._groups_rows = all(transform.operation.same_size for transform in others)
        self.same_size = self._groups_rows and not self._openers
        self._workers = min(config.get_num_parallel_workers(), backend.processors()) if workers is None else workers
        opened = {position for transform in self._openers for position in transform.step.positions}
        files = [index for index, position in enumerate(self.positions) if position in opened]
        self._compiled = data_backend.RowFunction(self._parts(others), parallel=max(2, self._workers), files=files)
        self._row_bytes = _MAX_BYTES  # The largest row of the last group whose files were opened.

    def run(self, items: Iterator[RowInContext], seed: int) -> Iterator[RowInContext]:
        """Yield the results for blocks of the columns `positions`, each with the context it was passed with."""
        return ordered_map(self._call, _with_keys(items, seed), self._workers)

    def run_rows(self, items: Iterator[RowInContext], seed: int) -> Iterator[RowInContext]:
        """Yield the results for single rows, each with its context; rows of one size are run in blocks."""
        for contexts, results in self.run_groups(items, seed, 1):
            if len(contexts) == 1:
                yield contexts[0], tuple(column[0, ...] for column in results)
                continue
            for index, context in enumerate(contexts):
                yield context, tuple(np.array(column[index]) for column in results)

    def run_groups(self, items: Iterator[RowInContext], seed: int, count: int) -> Iterator[tuple[list[Any], Row]]:
        """Yield the results for single rows in the groups that were run, stacked, with the list of their contexts.

        A group ends where `count` rows end, or a multiple of them.
        """
        if self._openers and self._compiled.opens:
            return self._run_files(items, seed, count)
        if self._openers:
            items = adaptive_map(self._open, items, self._workers)
        return self.run(map(_stacked, self._uniform_groups(items, count)), seed)

    def _uniform_groups(self, items: Iterator[RowInContext], count: int) -> Iterator[list[RowInContext]]:
        return _grouped(items, count, _signature, _bytes_of if self._groups_rows else lambda row: _MAX_BYTES)

    def _run_files(self, items: Iterator[RowInContext], seed: int, count: int) -> Iterator[tuple[list[Any], Row]]:
        """Do what `run_groups` does for rows with files; each group is opened and run in one thread."""
        groups = _grouped(items, count, lambda row: None, lambda row: self._row_bytes)
        for results, error in ordered_map(self._call_files, _with_keys(map(_columns, groups), seed), self._workers):
            yield from results
            if error is not None:
                raise error

    def _call_files(self, item: tuple[list[Any], np.ndarray, Any]) -> tuple[Sequence[Any], Exception | None]:
        contexts, keys, columns = item
        results = self._compiled.call_files(keys, columns)
        if results is not None:
            return [(contexts, results)], None
        # The files must be decoded first; see `RowFunction.call_files`.
        rows = zip(*columns, strict=True)
        return call_until_failure(self._open_and_call, list(zip(contexts, keys, rows, strict=True)))

    def _open_and_call(self, group: list[tuple[Any, Any, Row]]) -> list[tuple[list[Any], Row]]:
        """Return the results for rows with files, each with its key, as `run_groups` does."""
        opened = self._open([(item, item[2]) for item in group])
        self._row_bytes = max(_bytes_of(row) for _, row in opened)
        results = []
        for part in self._uniform_groups(iter(opened), len(opened)):
            triples, block = _stacked(part)
            contexts, keys, _ = zip(*triples, strict=True)
            results.append(self._call((list(contexts), np.array(keys), block)))
        return results

    def _open(self, items: list[RowInContext]) -> list[RowInContext]:
        """Return rows with the contents of files decoded."""
        contexts, rows = zip(*items, strict=True)
        columns: dict[int, Tensor] = dict(zip(self.positions, zip(*rows, strict=True), strict=True))
        for transform in self._openers:
            transform.apply(transform.operation.open, columns)
        return list(zip(contexts, zip(*columns.values(), strict=True), strict=True))

    def _call(self, item: tuple[Any, np.ndarray, Row]) -> RowInContext:
        context, keys, block = item
        for position, column in zip(self.positions, block, strict=True):
            if column.dtype.kind not in "biufV":
                names = {p: n for step in self.steps for p, n in zip(step.positions, step.names, strict=True)}
                raise checks.fail_type(
                    f'map, column "{names[position]}"', "transforms need numbers", column[0], "a function that reads it"
                )
        return context, self._compiled(keys, block)

    def _parts(self, transforms: Sequence[_Transform]) -> list[data_backend.RowPart]:
        """Return the transforms as functions of rows, or of blocks where neighbors take blocks."""
        parts = []
        for by_block, run in itertools.groupby(transforms, key=lambda transform: transform.operation.by_block):
            neighbors = tuple(run)
            positions = tuple(sorted({position for each in neighbors for position in each.step.positions}))
            function = functools.partial(_run_block if by_block else _run_row, neighbors, positions)
            parts.append(data_backend.RowPart(function, by_block, tuple(map(self.positions.index, positions))))
        return parts


@dataclasses.dataclass(frozen=True)
class _Transform:
    """One operation of a step, and its index among all operations of the chain."""

    index: int
    operation: TensorOperation
    step: Step

    def apply(self, function: Callable[..., Any], columns: dict[int, Tensor], *arguments: Any) -> None:
        """Replace each column of the step by what the function returns for it; errors name the column."""
        for position, name in zip(self.step.positions, self.step.names, strict=True):
            value, subject = columns[position], f'map, column "{name}"'
            with data_backend.error_subject(subject):
                try:
                    columns[position] = function(value, *arguments)
                except Exception as error:
                    checks.note_call(error, f"{type(self.operation).__name__} ({subject})", to_tensors((value,)))
                    raise


def _run_row(transforms: tuple[_Transform, ...], positions: tuple[int, ...], seed: Seed, *values: Tensor) -> Row:
    row = dict(zip(positions, values, strict=True))
    for transform in transforms:
        transform.apply(transform.operation.graph, row, row_random.fold_in(seed, transform.index))
    return tuple(row[position] for position in positions)


def _run_block(transforms: tuple[_Transform, ...], positions: tuple[int, ...], *values: Tensor) -> Row:
    block = dict(zip(positions, values, strict=True))
    for transform in transforms:
        transform.apply(transform.operation.block, block)
    return tuple(block[position] for position in positions)


def _split_openers(steps: Sequence[Step]) -> tuple[list[_Transform], list[_Transform]]:
    """Return the transforms that open files and come first for their columns, and all others."""
    openers: list[_Transform] = []
    others: list[_Transform] = []
    seen: set[int] = set()
    for step in steps:
        for operation in step.operations:
            transform = _Transform(len(openers) + len(others), operation, step)
            opens = operation.opens and seen.isdisjoint(step.positions)
            seen.update(step.positions)
            (openers if opens else others).append(transform)
    return openers, others


def transform_seed(pass_seed: PassSeed, depth: int) -> int:
    """Return the seed of the transforms of one pass, `depth` stages above the source."""
    return int(pass_seed.fold_in(_SEED_OFFSET + depth).generator().integers(2**63))


def row_keys(seed: int, start: int, count: int) -> np.ndarray:
    """Return one int64 for each of `count` rows from row `start` on; a row has the same key in every block."""
    value = np.uint64(seed) + np.arange(start + 1, start + count + 1, dtype=np.uint64) * _SPLITMIX[0]
    value = (value ^ (value >> np.uint64(30))) * _SPLITMIX[1]
    value = (value ^ (value >> np.uint64(27))) * _SPLITMIX[2]
    return (value ^ (value >> np.uint64(31))).view(np.int64)


def _with_keys(items: Iterator[tuple[Any, Any]], seed: int) -> Iterator[tuple[Any, np.ndarray, Any]]:
    start = 0
    for context, block in items:
        count = len(block[0])
        yield context, row_keys(seed, start, count), block
        start += count


def _grouped(
    items: Iterator[RowInContext], count: int, signature_of: Callable[[Row], object], size_of: Callable[[Row], int]
) -> Iterator[list[RowInContext]]:
    """Yield groups of rows: the first of `count` rows, for which the reader waits, then larger ones.

    `items`: The rows, each with its context. `count`: A group ends where this number of rows ends, or a multiple of it.
    `signature_of`: Returns what must be equal for all rows of a group. `size_of`: Returns the bytes of a row.
    """
    limit = min(count, _MAX_ROWS)
    period = count * max(1, _MAX_ROWS // count)
    remaining = period  # Rows until a group must end.
    size = 1
    group: list[RowInContext] = []
    group_signature = None
    try:
        for item in items:
            signature = signature_of(item[1])
            if group and (len(group) >= size or signature != group_signature):
                yield group
                remaining = remaining - len(group) or period
                limit = min(2 * limit, _MAX_ROWS)  # No reader waits for the later groups.
                group = []
            if not group:
                group_signature = signature
                size = max(1, min(limit, remaining, _MAX_BYTES // max(1, size_of(item[1]))))
            group.append(item)
    except Exception:
        if group:
            yield group  # The rows before the one that failed.
        raise
    if group:
        yield group


def _signature(row: Row) -> list[Any]:
    return [(value.shape, value.dtype) for value in row]


def _bytes_of(row: Row) -> int:
    return sum(value.nbytes for value in row)


def _columns(group: list[RowInContext]) -> tuple[list[Any], Any]:
    """Return the contexts and the columns of a group of rows."""
    contexts, rows = zip(*group, strict=True)
    return list(contexts), tuple(zip(*rows, strict=True))


def _stacked(group: list[RowInContext]) -> tuple[list[Any], Row]:
    contexts, columns = _columns(group)
    return contexts, tuple(map(np.stack, columns))
