"""What every stage of a pipeline promises: its columns, how many rows it has, and the rows of a pass."""

from __future__ import annotations

import abc
import copy
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from mixtrain import checks
from mixtrain.dataset.columns import boxed
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.sampler import BuiltinSampler

Row = tuple[np.ndarray, ...]


class Stage(abc.ABC):
    """One stage; immutable, and each pass starts anew from its seed.

    Attributes:
        columns: Names of the columns of its rows.
        parents: The stages whose rows it reads; a source has none.
        row_by_row: Whether each row is made of one row of the one parent, in the same order and by the same rule, so
            that another sampler of the source below means the same for the rows here.
    """

    row_by_row: ClassVar[bool] = False

    def __init__(self, columns: Sequence[str], *parents: Stage) -> None:
        self.columns = tuple(columns)
        self.parents = parents

    @abc.abstractmethod
    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
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
    def even(self) -> bool:
        """Whether all rows are known to be as long as the first: batches of one size, say."""
        return bool(self.parents) and all(parent.even for parent in self.parents)

    @property
    def repeat_count(self) -> int:
        """How often the last repetition repeats: 1 where nothing does, -1 where it does not end."""
        return self.parents[0].repeat_count if self.parents else 1

    @property
    def sampler(self) -> BuiltinSampler | None:
        """The sampler that decides which rows come; None where no single one does."""
        return self.parents[0].sampler if self.row_by_row else None

    @property
    def labels(self) -> np.ndarray | None:
        """The class of each row of the source that `sampler` chooses from; None where it is not known."""
        return self.parents[0].labels if self.row_by_row else None

    def with_sampler(self, sampler: BuiltinSampler) -> Stage:
        """Return the same stage with the rows that another sampler chooses.

        Raises:
            ValueError: The rows below do not come from a source that is read by index.
        """
        if self.sampler is None:
            raise ValueError(
                f"sampler: expected a source that is read by index; got {type(self).__name__}. Write the sampler in "
                "the source, before other steps."
            )
        copied = copy.copy(self)
        copied.parents = (self.parents[0].with_sampler(sampler),)
        return copied

    @property
    def reads_blocks(self) -> bool:
        """Whether `blocks` is quicker than `rows`: rows of one size, not made one by one."""
        return False

    def blocks(self, pass_seed: PassSeed, count: int) -> Iterator[Row]:
        """Yield the rows of one pass stacked, `count` at a time; the last block may be smaller."""
        rows = self.rows(pass_seed)
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
    check_column(values, name)
    if values[0].dtype.hasobject:
        return boxed(_stacked_dicts([value.item() for value in values], name))
    return np.array(values) if values[0].ndim == 0 else np.stack(values)


def _stacked_dicts(values: Sequence[dict[Any, Any]], name: str) -> dict[Any, Any]:
    """Return one dict with the dicts' values stacked."""
    keys = values[0].keys()
    for value in values:
        if value.keys() != keys:
            raise ValueError(
                f'batch: expected dicts with the keys {checks.listed(map(str, keys))} in column "{name}", as in the '
                f"first row of the batch; got {checks.listed(map(str, value))}. Write the same keys in every row."
            )
    columns = {key: [value[key] for value in values] for key in keys}
    return {
        key: _stacked_dicts(column, name) if isinstance(column[0], dict) else stack_column(
            [*map(np.asarray, column)], name
        )
        for key, column in columns.items()
    }


def check_column(values: Sequence[np.ndarray], name: str) -> None:
    """Raise where the values of one column cannot be stacked; see `stack_column`."""
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
