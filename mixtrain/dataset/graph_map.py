"""The stage of transforms that run compiled: consecutive ones become one, and blocks stay blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mixtrain.dataset.chain import Chain, Step, seed_of
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.source import ArraySource
from mixtrain.dataset.stage import Row, Stage, check_column, stack_column
from mixtrain.dataset.transform import Select, depth

_BLOCK = 32


class GraphMap(Stage):
    """Transforms of some columns, in place.

    Args:
        parent: Makes the rows. Where it is such a stage too, both run as one.
        step: The transforms.
        names: Names of all columns afterwards.
        workers: See `Chain`.
    """

    row_by_row = True

    def __init__(self, parent: Stage, step: Step, names: Sequence[str], workers: int | None) -> None:
        fused = isinstance(parent, GraphMap)
        steps: tuple[Step, ...] = (*parent.chain.steps, step) if isinstance(parent, GraphMap) else (step,)
        self.workers: int | None = workers or (parent.workers if isinstance(parent, GraphMap) else None)
        self.chain: Chain = Chain(steps, self.workers)
        super().__init__(names, parent.parents[0] if fused else parent)

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        if self.reads_blocks:
            for block in self.blocks(pass_seed, _BLOCK):
                for index in range(len(block[0])):
                    yield tuple(np.array(column[index]) for column in block)
            return
        for row, results in self.chain.run_rows(self._items(pass_seed), seed_of(pass_seed, depth(self))):
            yield self._merge(row, results)

    def blocks(self, pass_seed: PassSeed, count: int) -> Iterator[Row]:
        if not self.reads_blocks:
            yield from self._regrouped(pass_seed, count)
            return
        touched = self.chain.touched
        blocks = self.parents[0].blocks(pass_seed, count)
        items = ((block, tuple(block[place] for place in touched)) for block in blocks)
        for block, results in self.chain.run(items, seed_of(pass_seed, depth(self))):
            yield self._merge(block, results)

    @property
    def reads_blocks(self) -> bool:
        """Whether rows come from the source in blocks, of one size, and stay of one size."""
        return self.chain.same_size and _reads_arrays(self.parents[0])

    def _items(self, pass_seed: PassSeed) -> Iterator[tuple[Row, Row]]:
        """Yield each row of the parent with the values that the transforms take."""
        touched = self.chain.touched
        for row in self.parents[0].rows(pass_seed):
            yield row, tuple(row[place] for place in touched)

    def _regrouped(self, pass_seed: PassSeed, count: int) -> Iterator[Row]:
        """Yield blocks of `count` rows, put together from the groups in which the rows were run, or cut from them."""
        parts: list[tuple[list[Row], Row]] = []
        missing = count
        for rows, results in self.chain.run_groups(self._items(pass_seed), seed_of(pass_seed, depth(self)), count):
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
        touched = dict(zip(self.chain.touched, zip(*(results for _, results in parts), strict=True), strict=True))
        block = []
        for place, name in enumerate(self.columns):
            if place not in touched:
                block.append(stack_column([row[place] for rows, _ in parts for row in rows], name))
                continue
            check_column([column[0] for column in touched[place]], name)
            block.append(touched[place][0] if len(parts) == 1 else np.concatenate(touched[place]))
        return tuple(block)

    def _merge(self, row: Row, results: Row) -> Row:
        merged = list(row)
        for place, value in zip(self.chain.touched, results, strict=True):
            merged[place] = value
        return tuple(merged)


def _reads_arrays(stage: Stage) -> bool:
    return isinstance(stage, ArraySource) or (isinstance(stage, Select) and _reads_arrays(stage.parents[0]))
