"""The stage of compiled transforms: consecutive ones are fused, and blocks of rows stay blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mixtrain.dataset.chain import Chain, Step, transform_seed
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.source import ArraySource
from mixtrain.dataset.stage import Row, Stage, check_column, stack_column
from mixtrain.dataset.transform import Select, depth

_BLOCK = 32


class GraphMap(Stage):
    """Transforms of some columns, in place; `names` are those of all columns afterwards.

    A parent that is a `GraphMap` too is fused with this stage.
    """

    row_by_row = True

    def __init__(self, parent: Stage, step: Step, names: Sequence[str], workers: int | None) -> None:
        steps: tuple[Step, ...] = (step,)
        if isinstance(parent, GraphMap):
            steps, workers = (*parent.chain.steps, step), workers or parent.workers
            parent = parent.parents[0]
        self.workers: int | None = workers or None
        self.chain: Chain = Chain(steps, self.workers)
        super().__init__(names, parent)

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        if self.reads_blocks:
            for block in self.blocks(pass_seed, _BLOCK):
                for index in range(len(block[0])):
                    yield tuple(np.array(column[index]) for column in block)
            return
        for row, results in self.chain.run_rows(self._items(pass_seed), transform_seed(pass_seed, depth(self))):
            yield self._merge(row, results)

    def blocks(self, pass_seed: PassSeed, count: int) -> Iterator[Row]:
        if not self.reads_blocks:
            yield from self._regrouped(pass_seed, count)
            return
        positions = self.chain.positions
        blocks = self.parents[0].blocks(pass_seed, count)
        items = ((block, tuple(block[position] for position in positions)) for block in blocks)
        for block, results in self.chain.run(items, transform_seed(pass_seed, depth(self))):
            yield self._merge(block, results)

    @property
    def reads_blocks(self) -> bool:
        """Whether rows come from the source in blocks, of one size, and stay of one size."""
        return self.chain.same_size and _reads_arrays(self.parents[0])

    def _items(self, pass_seed: PassSeed) -> Iterator[tuple[Row, Row]]:
        """Yield each row of the parent with the values that are transformed."""
        positions = self.chain.positions
        for row in self.parents[0].rows(pass_seed):
            yield row, tuple(row[position] for position in positions)

    def _regrouped(self, pass_seed: PassSeed, count: int) -> Iterator[Row]:
        """Yield blocks of `count` rows, joined or sliced from the groups in which the rows were run."""
        parts: list[tuple[list[Row], Row]] = []
        missing = count
        seed = transform_seed(pass_seed, depth(self))
        for rows, results in self.chain.run_groups(self._items(pass_seed), seed, count):
            start = 0
            while start < len(rows):
                part = slice(start, start + missing)
                parts.append((rows[part], tuple(column[part] for column in results)))
                missing -= len(rows[part])
                start = part.stop
                if not missing:
                    yield self._joined(parts)
                    parts, missing = [], count
        if parts:
            yield self._joined(parts)

    def _joined(self, parts: Sequence[tuple[list[Row], Row]]) -> Row:
        results = dict(zip(self.chain.positions, zip(*(columns for _, columns in parts), strict=True), strict=True))
        block = []
        for position, name in enumerate(self.columns):
            if position not in results:
                block.append(stack_column([row[position] for rows, _ in parts for row in rows], name))
                continue
            columns = results[position]
            check_column([column[0] for column in columns], name)
            block.append(columns[0] if len(parts) == 1 else np.concatenate(columns))
        return tuple(block)

    def _merge(self, row: Row, results: Row) -> Row:
        merged = list(row)
        for position, value in zip(self.chain.positions, results, strict=True):
            merged[position] = value
        return tuple(merged)


def _reads_arrays(stage: Stage) -> bool:
    return isinstance(stage, ArraySource) or (isinstance(stage, Select) and _reads_arrays(stage.parents[0]))
