"""A part of what is run over rows: a function of some columns, of single rows or of blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class RowPart:
    """A part of a `RowFunction`.

    Attributes:
        function: From a seed and one tensor per column to a tuple of tensors; without the seed, and with rows along a
            first axis of each tensor, where it is for blocks.
        by_block: Whether it takes whole blocks, which costs less than row by row.
        columns: Which columns it takes and returns, while the others stay; None: it takes all, and returns any number.
    """

    function: Callable[..., tuple[Any, ...]]
    by_block: bool
    columns: tuple[int, ...] | None = None

    def applied(self, run: Callable[[tuple[Any, ...]], Sequence[Any]], block: Sequence[Any]) -> tuple[Any, ...]:
        """Return the columns of a block, those of this part as `run` makes them of their tuple."""
        if self.columns is None:
            return tuple(run(tuple(block)))
        columns = list(block)
        for place, made in zip(self.columns, run(tuple(block[place] for place in self.columns)), strict=True):
            columns[place] = made
        return tuple(columns)
