"""The base class of the stages of a pipeline: its columns, its size, and the rows of a pass."""

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
    """One stage of a pipeline; immutable, and every pass starts from the beginning, with its own seed.

    Attributes:
        columns: Names of the columns.
        parents: The stages whose rows are read; a source has none.
        row_by_row: Whether each row is computed from one row of the one parent, in the same order and by the same
            rule, so that another sampler of the source selects the same rows here.
    """

    row_by_row: ClassVar[bool] = False

    def __init__(self, columns: Sequence[str], *parents: Stage) -> None:
        self.columns = tuple(columns)
        self.parents = parents

    @abc.abstractmethod
    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        """Yield the rows of one pass; the caller may write into their arrays."""

    @property
    def size(self) -> int | None:
        """Rows in a pass, None if unknown before a pass; an infinite stage has the size of one repetition."""
        return self.parents[0].size

    @property
    def infinite(self) -> bool:
        """Whether a pass is known to be infinite."""
        return any(parent.infinite for parent in self.parents)

    @property
    def batch_size(self) -> int:
        """Rows of the source in one row of this stage; 1 without batches."""
        return self.parents[0].batch_size if self.parents else 1

    @property
    def uniform(self) -> bool:
        """Whether all rows are known to be as long as the first, such as batches of one size."""
        return bool(self.parents) and all(parent.uniform for parent in self.parents)

    @property
    def repeat_count(self) -> int:
        """How often the last repetition repeats the rows: 1 without one, -1 if it is infinite."""
        return self.parents[0].repeat_count if self.parents else 1

    @property
    def sampler(self) -> BuiltinSampler | None:
        """The sampler that selects the rows; None if there is no single one."""
        return self.parents[0].sampler if self.row_by_row else None

    @property
    def labels(self) -> np.ndarray | None:
        """The class of each row that `sampler` selects from; None if unknown."""
        return self.parents[0].labels if self.row_by_row else None

    def with_sampler(self, sampler: BuiltinSampler) -> Stage:
        """Return a copy of this stage whose rows another sampler selects.

        Raises: ValueError: The rows do not come from a source that is read by index.
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
        """Whether `blocks` is faster than `rows`: rows of one size, not computed one by one."""
        return False

    def blocks(self, pass_seed: PassSeed, count: int) -> Iterator[Row]:
        """Yield the rows of one pass stacked, `count` at a time; the last block may be smaller."""
        rows = self.rows(pass_seed)
        while block := list(itertools.islice(rows, count)):
            columns = zip(*block, strict=True)
            yield tuple(stack_column(values, name) for values, name in zip(columns, self.columns, strict=True))


def stack_column(values: Sequence[np.ndarray], name: str) -> np.ndarray:
    """Stack the values of one column on a new first axis."""
    check_column(values, name)
    if values[0].dtype.hasobject:
        return boxed(_stacked_dicts([value.item() for value in values], name))
    return np.array(values) if values[0].ndim == 0 else np.stack(values)


def _stacked_dicts(values: Sequence[dict[Any, Any]], name: str) -> dict[Any, Any]:
    """Return one dict with the values of several dicts stacked."""
    keys = values[0].keys()
    for value in values:
        if value.keys() != keys:
            raise ValueError(
                f'batch: expected dicts with the keys {checks.join_names(map(str, keys))} in column "{name}", as in '
                f"the first row of the batch; got {checks.join_names(map(str, value))}. "
                "Write the same keys in every row."
            )
    columns = {key: [value[key] for value in values] for key in keys}
    return {
        key: _stacked_dicts(column, name) if isinstance(column[0], dict) else stack_column(
            [*map(np.asarray, column)], name
        )
        for key, column in columns.items()
    }


def check_column(values: Sequence[np.ndarray], name: str) -> None:
    """Raise if the values of one column cannot be stacked; see `stack_column`."""
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
