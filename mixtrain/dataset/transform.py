"""Stages that change rows: map applies functions to columns, select renames, reorders and drops columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mixtrain.dataset.columns import Replacement, to_array
from mixtrain.dataset.draw import Draw
from mixtrain.dataset.stage import Row, Stage

Operation = Callable[..., Any]


class Map(Stage):
    """Functions applied one after the other to some columns; the last one's results replace these columns.

    An operation takes one array per input column and returns an array, or a tuple of them for several columns.
    """

    def __init__(
        self, parent: Stage, operations: Sequence[Operation], inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        self._operations = tuple(operations)
        self._replacement = Replacement("map", parent.columns, inputs, outputs)
        super().__init__(self._replacement.columns, parent)

    @property
    def size(self) -> int | None:
        return self.parents[0].size

    def rows(self, draw: Draw) -> Iterator[Row]:
        replacement = self._replacement
        for row in self.parents[0].rows(draw):
            values: tuple[Any, ...] = tuple(row[index] for index in replacement.inputs)
            for operation in self._operations:
                result = operation(*values)
                values = result if isinstance(result, tuple) else (result,)
            replacement.check_count("map", len(values))
            arrays = [
                to_array("map", name, value) for name, value in zip(replacement.outputs, values, strict=True)
            ]
            yield replacement.merge(row, arrays)


class Select(Stage):
    """Some columns, in a given order, under given names."""

    def __init__(self, parent: Stage, positions: Sequence[int], names: Sequence[str]) -> None:
        super().__init__(names, parent)
        self._positions = tuple(positions)

    def rows(self, draw: Draw) -> Iterator[Row]:
        for row in self.parents[0].rows(draw):
            yield tuple(row[index] for index in self._positions)

    def blocks(self, draw: Draw, count: int) -> Iterator[Row]:
        for block in self.parents[0].blocks(draw, count):
            yield tuple(block[index] for index in self._positions)
