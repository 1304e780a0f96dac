"""The stage of transforms that run compiled: consecutive ones become one, and blocks stay blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mixtrain.dataset.chain import Chain, Step, seed_of
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.source import ArraySource
from mixtrain.dataset.stage import Row, Stage
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
        touched = self.chain.touched
        items = ((row, tuple(row[place] for place in touched)) for row in self.parents[0].rows(pass_seed))
        for row, results in self.chain.run_rows(items, seed_of(pass_seed, depth(self))):
            yield self._merge(row, results)

    def blocks(self, pass_seed: PassSeed, count: int) -> Iterator[Row]:
        if not self.reads_blocks:
            yield from super().blocks(pass_seed, count)
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

    def _merge(self, row: Row, results: Row) -> Row:
        merged = list(row)
        for place, value in zip(self.chain.touched, results, strict=True):
            merged[place] = value
        return tuple(merged)


def _reads_arrays(stage: Stage) -> bool:
    return isinstance(stage, ArraySource) or (isinstance(stage, Select) and _reads_arrays(stage.parents[0]))
