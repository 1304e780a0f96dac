"""What every stage of a pipeline promises: its columns, how many rows it has, and the rows of a pass."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from mixtrain.dataset.draw import Draw

Row = tuple[np.ndarray, ...]


class Stage(abc.ABC):
    """One stage; immutable, and each pass starts anew from its draw.

    Attributes:
        columns: Names of the columns of its rows.
        parents: The stages whose rows it reads; a source has none.
    """

    def __init__(self, columns: Sequence[str], *parents: Stage) -> None:
        self.columns = tuple(columns)
        self.parents = parents

    @abc.abstractmethod
    def rows(self, draw: Draw) -> Iterator[Row]:
        """Yield the rows of one pass; the reader may write into their arrays."""

    @property
    def size(self) -> int | None:
        """Rows in a pass, None where only a pass can tell; a stage without end counts as one repetition."""
        return self.parents[0].size

    @property
    def infinite(self) -> bool:
        """Whether a pass is known never to end."""
        return any(parent.infinite for parent in self.parents)

    @property
    def batch_size(self) -> int:
        """Rows of the source in one row here: 1 where nothing batches."""
        return self.parents[0].batch_size if self.parents else 1

    @property
    def repeat_count(self) -> int:
        """How often the last repetition repeats: 1 where nothing does, -1 where it does not end."""
        return self.parents[0].repeat_count if self.parents else 1

    def blocks(self, draw: Draw, count: int) -> Iterator[Row]:
        """Yield the rows of one pass stacked, `count` at a time; the last block may be smaller."""
        rows = self.rows(draw)
        while block := list(itertools.islice(rows, count)):
            yield stack_rows(block, self.columns)


def stack_rows(rows: Sequence[Row], columns: Sequence[str]) -> Row:
    """Stack each column of the rows on a new first axis."""
    return tuple(
        stack_column(values, name) for values, name in zip(zip(*rows, strict=True), columns, strict=True)
    )


def stack_column(values: Sequence[np.ndarray], name: str) -> np.ndarray:
    """Stack the values of one column.

    Raises:
        TypeError: Their dtypes differ.
        ValueError: Their shapes differ.
    """
    first = values[0]
    for value in values:
        if value.shape != first.shape:
            raise ValueError(
                f'batch: expected one shape in column "{name}", {first.shape} as in the first row of the batch; '
                f"got {value.shape}. Write a map that brings all rows to one shape, or batch_size=1."
            )
        if value.dtype != first.dtype and value.dtype.kind not in "US":
            raise TypeError(
                f'batch: expected one dtype in column "{name}", {first.dtype} as in the first row of the batch; '
                f"got {value.dtype}. Write the same dtype in every row, for example value.astype(np.{first.dtype})."
            )
    return np.array(values) if first.ndim == 0 else np.stack(values)
