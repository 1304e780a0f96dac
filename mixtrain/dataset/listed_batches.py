"""The source of batches whose rows are listed by a batch sampler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.batch import stack_lists
from mixtrain.dataset.columns import to_array
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.sampler import Sampler
from mixtrain.dataset.source import read_row
from mixtrain.dataset.stage import Row, Stage
from mixtrain.dtype import as_dtype


class ListedBatches(Stage):
    """Batches of a random-access source, whose rows' indices are listed in `batches`.

    `dtypes`: The dtype that each column of a row must have; None: not checked. `collate`: From one list of arrays per
    column to a tuple of batches; None: the arrays are stacked.
    """

    def __init__(
        self, where: str, source: Any, columns: Sequence[str], dtypes: Sequence[Any] | None,
        batches: Iterable[Sequence[int]], collate: Callable[..., Any] | None,
    ) -> None:
        super().__init__(columns)
        if not hasattr(source, "__getitem__") or not hasattr(source, "__len__"):
            raise checks.fail_type(
                where, "batch_sampler needs a source with __getitem__ and __len__", source, "a list of rows"
            )
        self._where = where
        self._source = source
        self._dtypes = [as_dtype(dtype) for dtype in dtypes or ()]
        self._batches = checks.instance(where, "batch_sampler", batches, Iterable, "[[0, 1], [2, 3]]")
        if collate is not None and not callable(collate):
            raise checks.fail_type(where, "collate_fn must be a function", collate, "collate_fn=None")
        self._collate = collate

    @property
    def size(self) -> int | None:
        return len(self._batches) if isinstance(self._batches, Sized) else None

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        if isinstance(self._batches, Sampler):
            self._batches.dataset_size = len(self._source)
        for indices in self._batches:
            rows = [read_row(self._where, self._source[int(index)], self.columns) for index in np.atleast_1d(indices)]
            lists = [list(values) for values in zip(*rows, strict=True)]
            self._check(lists)
            yield stack_lists(self.columns, lists) if self._collate is None else self._collated(lists)

    def _check(self, lists: Sequence[Sequence[np.ndarray]]) -> None:
        for name, dtype, values in zip(self.columns, self._dtypes, lists, strict=False):
            if any(value.dtype != dtype for value in values):
                raise checks.fail_type(
                    self._where, f'column "{name}" must be {dtype.name}, its column_types', values[0].dtype,
                    "that dtype"
                )

    def _collated(self, lists: Sequence[Any]) -> Row:
        results = self._collate(*lists)  # type: ignore[misc]
        values = results if isinstance(results, tuple) else (results,)
        if len(values) != len(self.columns):
            raise checks.fail_value(
                self._where, f"collate_fn must return {len(self.columns)} columns", len(values), "one value per column"
            )
        return tuple(to_array(self._where, name, value) for name, value in zip(self.columns, values, strict=True))
