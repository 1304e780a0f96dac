"""Stages that change rows: map applies functions to columns, select renames, reorders and drops columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mixtrain.dataset.chain import Chain, Step, keys_of, seed_of
from mixtrain.dataset.columns import Replacement, to_array, unboxed
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row, Stage
from mixtrain.dataset.transforms.operation import TensorOperation
from mixtrain.dataset.transforms.picture import is_picture, to_picture
from mixtrain.dataset.transforms.transform_chain import for_pictures, run_one

Operation = Callable[..., Any]
# What passes from one part of a map to the next: the row and its key, and the values so far.
Item = tuple[tuple[Row, int], tuple[Any, ...]]


class Map(Stage):
    """Functions applied one after the other to some columns; the last one's results replace these columns.

    An operation takes one array per input column and returns an array, or a tuple of them for several columns.
    Neighboring transforms that have a graph form run compiled, the others as Python, row by row.
    """

    row_by_row = True

    def __init__(
        self,
        parent: Stage,
        operations: Sequence[Operation],
        inputs: Sequence[str],
        outputs: Sequence[str],
        workers: int | None = None,
    ) -> None:
        self._replacement = Replacement("map", parent.columns, inputs, outputs)
        runs = [(compiled, tuple(run)) for compiled, run in itertools.groupby(operations, key=has_graph)]
        self._parts: list[_PythonPart | _GraphPart] = [
            _GraphPart(run, inputs, workers, last=number == len(runs)) if compiled else _PythonPart(run)
            for number, (compiled, run) in enumerate(runs, start=1)
        ]
        super().__init__(self._replacement.columns, parent)

    @property
    def size(self) -> int | None:
        return self.parents[0].size

    @property
    def even(self) -> bool:
        return False  # The functions may give arrays of any length.

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        replacement = self._replacement
        seed = seed_of(pass_seed, depth(self))
        items: Iterator[Item] = (
            ((row, int(keys_of(seed, number, 1)[0])), tuple(unboxed(row[index]) for index in replacement.inputs))
            for number, row in enumerate(self.parents[0].rows(pass_seed))
        )
        for place, part in enumerate(self._parts):
            items = part.run(items, seed + place)
        for (row, _), values in items:
            replacement.check_count("map", len(values))
            arrays = [
                to_array("map", name, value) for name, value in zip(replacement.outputs, values, strict=True)
            ]
            yield replacement.merge(row, arrays)


class _PythonPart:
    """Functions, and transforms without a graph form, called row by row."""

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        self._operations = operations

    def run(self, items: Iterator[Item], seed: int) -> Iterator[Item]:
        for (row, key), values in items:
            for place, operation in enumerate(self._operations):
                result = run_one(operation, values, (key, (seed + place) % 2**31))
                values = result if isinstance(result, tuple) else (result,)
            yield (row, key), values


class _GraphPart:
    """Transforms that run compiled, each on all values; compiled at the first row, which tells what the values are.

    Args:
        operations: The transforms.
        inputs: Names of the map's columns.
        workers: See `Chain`.
        last: Whether arrays will do for what should be Pillow's images, since nobody looks at them.
    """

    def __init__(
        self, operations: tuple[Any, ...], inputs: Sequence[str], workers: int | None, *, last: bool
    ) -> None:
        self._operations = operations
        self._inputs = tuple(inputs)
        self._workers = workers
        self._last = last
        self._chains: dict[tuple[bool, ...], tuple[Chain, bool]] = {}

    def run(self, items: Iterator[Item], seed: int) -> Iterator[Item]:
        first = next(items, None)
        if first is None:
            return
        pictures = tuple(map(is_picture, first[1]))
        if pictures not in self._chains:
            self._chains[pictures] = self._chain(pictures)
        chain, made = self._chains[pictures]
        arrays = ((kept, tuple(map(_as_array, values))) for kept, values in itertools.chain([first], items))
        for kept, values in chain.run_rows(arrays, seed):
            yield kept, tuple(to_picture("map", value) for value in values) if made and not self._last else values

    def _chain(self, pictures: tuple[bool, ...]) -> tuple[Chain, bool]:
        """Return the transforms compiled for what the values are, and whether pictures come out of them."""
        known = len(pictures) == len(self._inputs)
        names = self._inputs if known else tuple(f"value {place}" for place in range(len(pictures)))
        chosen, made = for_pictures(self._operations, all(pictures))
        return Chain([Step(chosen, tuple(range(len(pictures))), names)], self._workers), made


def _as_array(value: Any) -> np.ndarray:
    return np.asarray(value)


def has_graph(operation: Operation) -> bool:
    """Whether an operation is a transform that may run compiled."""
    return isinstance(operation, TensorOperation) and operation.has_graph


def depth(stage: Stage) -> int:
    """Return how many stages lie below, the stage itself included."""
    return 1 + max((depth(parent) for parent in stage.parents), default=0)


class Select(Stage):
    """Some columns, in a given order, under given names."""

    row_by_row = True

    def __init__(self, parent: Stage, positions: Sequence[int], names: Sequence[str]) -> None:
        super().__init__(names, parent)
        self._positions = tuple(positions)

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        for row in self.parents[0].rows(pass_seed):
            yield tuple(row[index] for index in self._positions)

    @property
    def reads_blocks(self) -> bool:
        return self.parents[0].reads_blocks

    def blocks(self, pass_seed: PassSeed, count: int) -> Iterator[Row]:
        if not self.reads_blocks:
            yield from super().blocks(pass_seed, count)  # Columns that are dropped need not fit each other.
            return
        for block in self.parents[0].blocks(pass_seed, count):
            yield tuple(block[index] for index in self._positions)
