"""Stages that change rows: map applies functions to columns, select renames, reorders and drops columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.chain import Chain, Step, row_keys, transform_seed
from mixtrain.dataset.columns import Replacement, to_array, unboxed
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row, Stage
from mixtrain.dataset.transforms.operation import Operation, TensorOperation
from mixtrain.dataset.transforms.picture import is_picture, to_picture
from mixtrain.dataset.transforms.transform_chain import for_pictures, run_one

# Passed from one part of a map to the next: the row with its random key, and the values so far.
Item = tuple[tuple[Row, int], tuple[Any, ...]]


class Map(Stage):
    """Functions applied in sequence to some columns; the results of the last one replace these columns.

    An operation takes one array per input column and returns an array, or a tuple of arrays for several columns.
    Neighboring transforms with a graph form run compiled; other operations run in Python, row by row.
    """

    row_by_row = True

    def __init__(
        self, parent: Stage, operations: Sequence[Operation], inputs: Sequence[str], outputs: Sequence[str],
        workers: int | None = None,
    ) -> None:
        self._replacement = Replacement("map", parent.columns, inputs, outputs)
        runs = [(compiled, tuple(run)) for compiled, run in itertools.groupby(operations, key=has_graph)]
        self._parts: list[_PythonPart | _GraphPart] = [
            _GraphPart(run, inputs, workers, last=index == len(runs)) if compiled else _PythonPart(run)
            for index, (compiled, run) in enumerate(runs, start=1)
        ]
        super().__init__(self._replacement.columns, parent)

    @property
    def uniform(self) -> bool:
        return False  # The functions may return arrays of any length.

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        replacement = self._replacement
        seed = transform_seed(pass_seed, depth(self))
        items: Iterator[Item] = (
            ((row, int(row_keys(seed, number, 1)[0])), tuple(unboxed(row[index]) for index in replacement.inputs))
            for number, row in enumerate(self.parents[0].rows(pass_seed))
        )
        for index, part in enumerate(self._parts):
            items = part.run(items, seed + index)
        for (row, _), values in items:
            replacement.check_count("map", len(values))
            arrays = [to_array("map", name, value) for name, value in zip(replacement.outputs, values, strict=True)]
            yield replacement.merge(row, arrays)


class _PythonPart:
    """Functions, and transforms without a graph form, called row by row."""

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        self._operations = operations

    def run(self, items: Iterator[Item], seed: int) -> Iterator[Item]:
        for (row, key), values in items:
            for index, operation in enumerate(self._operations):
                try:
                    result = run_one(operation, values, (key, (seed + index) % 2**31))
                except Exception as error:
                    name = getattr(operation, "__qualname__", type(operation).__name__)
                    checks.note_call(error, f"{name} (map)", values)
                    raise
                values = result if isinstance(result, tuple) else (result,)
            yield (row, key), values


class _GraphPart:
    """Transforms that run compiled, each on all values; compiled at the first row, when the values are known.

    Args: last: Whether no operation follows, so that arrays are returned instead of Pillow images.
    """

    def __init__(self, operations: tuple[Any, ...], inputs: Sequence[str], workers: int | None, *, last: bool) -> None:
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
        chain, returns_pictures = self._chains[pictures]
        arrays = ((context, tuple(map(np.asarray, values))) for context, values in itertools.chain([first], items))
        for context, values in chain.run_rows(arrays, seed):
            if returns_pictures and not self._last:
                values = tuple(to_picture("map", value) for value in values)
            yield context, values

    def _chain(self, pictures: tuple[bool, ...]) -> tuple[Chain, bool]:
        """Return the transforms compiled for values that are Pillow images or not, and whether they return these."""
        known = len(pictures) == len(self._inputs)
        names = self._inputs if known else tuple(f"value {index}" for index in range(len(pictures)))
        operations, returns_pictures = for_pictures(self._operations, all(pictures))
        return Chain([Step(operations, tuple(range(len(pictures))), names)], self._workers), returns_pictures


def has_graph(operation: Operation) -> bool:
    """Whether an operation is a transform that may run compiled."""
    return isinstance(operation, TensorOperation) and operation.has_graph


def depth(stage: Stage) -> int:
    """Return the number of stages from the source to this stage."""
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
            yield from super().blocks(pass_seed, count)  # Rows of the dropped columns may have different shapes.
            return
        for block in self.parents[0].blocks(pass_seed, count):
            yield tuple(block[index] for index in self._positions)
