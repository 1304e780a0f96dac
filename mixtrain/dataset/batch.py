"""The batch stages: consecutive rows stacked, of a fixed or a computed size, with a function of each batch."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.columns import Replacement, length, to_array, unboxed
from mixtrain.dataset.padding import Padding
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row, Stage, stack_column


@dataclasses.dataclass(frozen=True)
class BatchInfo:
    """The number of the batch in its epoch, `batch_num`, and of the epoch, `epoch_num`, which `batch` passes to
    functions; from 0.

    Example:
        >>> BatchInfo(batch_num=2, epoch_num=0).get_batch_num()
        2
    """

    batch_num: int
    epoch_num: int

    def get_batch_num(self) -> int:
        """Return the number of the batch in its epoch, from 0."""
        return self.batch_num

    def get_epoch_num(self) -> int:
        """Return the number of the epoch, from 0."""
        return self.epoch_num


class Batch(Stage):
    """Every `batch_size` rows stacked on a new first axis."""

    def __init__(self, parent: Stage, batch_size: int, drop_remainder: bool) -> None:
        super().__init__(parent.columns, parent)
        self._batch_size = batch_size
        self._drop_remainder = drop_remainder

    @property
    def size(self) -> int | None:
        size = self.parents[0].size
        if size is None:
            return None
        return size // self._batch_size if self._drop_remainder else -(-size // self._batch_size)

    @property
    def batch_size(self) -> int:
        return self._batch_size

    @property
    def uniform(self) -> bool:
        size = self.parents[0].size
        return self._drop_remainder or (size is not None and size % self._batch_size == 0)

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        for block in self.parents[0].blocks(pass_seed, self._batch_size):
            if length(block[0]) == self._batch_size or not self._drop_remainder:
                yield block


class FunctionBatch(Stage):
    """Batches whose size or contents are computed by a function.

    `batch_size`: A number of rows, or a function from `BatchInfo` to one. `per_batch_map`: Takes one list of arrays per
    input column, then `BatchInfo`; returns such lists, or arrays or dicts for whole batches. `padding`: Pads the rows
    of a batch to one shape, after `per_batch_map`.
    """

    def __init__(
        self, parent: Stage, batch_size: int | Callable[[BatchInfo], int], drop_remainder: bool,
        per_batch_map: Callable[..., Any] | None, inputs: Sequence[str], outputs: Sequence[str],
        padding: Padding | None = None,
    ) -> None:
        self._size = batch_size
        self._drop_remainder = drop_remainder
        self._map = per_batch_map
        self._padding = padding
        self._replacement = Replacement("batch", parent.columns, inputs, outputs)
        super().__init__(self._replacement.columns, parent)

    @property
    def size(self) -> int | None:
        if callable(self._size):
            return None
        return Batch(self.parents[0], self._size, self._drop_remainder).size

    @property
    def batch_size(self) -> int:
        return -1 if callable(self._size) else self._size

    @property
    def uniform(self) -> bool:
        return False  # The functions may return batches of any length.

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        rows = self.parents[0].rows(pass_seed)
        for number in itertools.count():
            info = BatchInfo(number, pass_seed.epoch)
            size = self._size(info) if callable(self._size) else self._size
            block = list(itertools.islice(rows, checks.integer("batch", "batch_size", size, at_least=1)))
            if not block or (self._drop_remainder and len(block) < size):
                return
            lists: Sequence[Any] = [list(values) for values in zip(*block, strict=True)]
            yield stack_lists(self.columns, lists if self._map is None else self._mapped(lists, info), self._padding)

    def _mapped(self, lists: Sequence[Any], info: BatchInfo) -> Sequence[Any]:
        replacement = self._replacement
        inputs = ([*map(unboxed, lists[index])] for index in replacement.inputs)
        results = self._map(*inputs, info)  # type: ignore[misc]
        if not isinstance(results, tuple):
            results = (results,)
        replacement.check_count("batch", len(results))
        for name, values in zip(replacement.outputs, results, strict=True):
            if isinstance(values, (dict, np.ndarray)):
                continue  # The column of the whole batch.
            if not hasattr(values, "__len__"):
                raise checks.fail_type(
                    "batch", f'per_batch_map must return a list or an array for the column "{name}"', values,
                    "return [2 * x for x in rows]",
                )
            if len(values) != len(lists[0]):
                raise ValueError(
                    f'batch: expected {len(lists[0])} rows from per_batch_map in column "{name}", as many as it was '
                    f"given; got {len(values)}. Write one result for each row."
                )
        return replacement.merge(lists, results)


def stack_lists(columns: Sequence[str], lists: Sequence[Any], padding: Padding | None = None) -> Row:
    """Return the values of each column stacked, padded first if `padding` is given."""
    padded = lists if padding is None else map(padding, columns, lists)
    return tuple(_stack(name, values) for name, values in zip(columns, padded, strict=True))


def _stack(name: str, values: Sequence[np.ndarray]) -> np.ndarray:
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, dict):
        return to_array("batch", name, values)
    return stack_column([to_array("batch", name, value) for value in values], name)
