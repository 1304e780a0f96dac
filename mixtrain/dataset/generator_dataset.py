"""GeneratorDataset: rows from a user-defined object or function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mixtrain import checks
from mixtrain.dataset.columns import read_names
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.dtype_check import DtypeCheck
from mixtrain.dataset.listed_batches import ListedBatches
from mixtrain.dataset.sampling import SamplerLike, check_workers, choose_sampler
from mixtrain.dataset.schema import Schema, read_schema
from mixtrain.dataset.source import IndexedSource, IteratedSource
from mixtrain.dataset.stage import Stage
from mixtrain.typing import DTypeLike

_WHERE = "GeneratorDataset"


class GeneratorDataset(Dataset):
    """Rows from a Python object or function.

    Args:
        source: An object with `__getitem__` and `__len__`; an iterable; or a function that returns an iterable, called
            once for each epoch. A row is a tuple with one value per column, or the value of the one column. Dtypes are
            preserved; a Python int is int64 and a float float64.
        column_names: A name, or one for each value of a row.
        column_types: The dtype that each column must have, checked for every row; not checked by default.
        schema: A `Schema` or the path of its file, instead of `column_names` and `column_types`.
        num_samples, sampler, num_shards, shard_id: As in `Cifar10Dataset`.
        num_parallel_workers, python_multiprocessing, max_rowsize: Without effect: rows are read in order, ahead of the
            training step.
        shuffle: Whether to shuffle the rows, in a new order in each epoch. By default True for a source with
            `__getitem__`; other sources are read in their own order.
        batch_sampler: A sampler or an iterable of lists of indices, one for each batch; instead of `num_samples`,
            `shuffle`, `sampler` and the shards. Needs a source with `__getitem__`.
        collate_fn: Builds a batch instead of stacking: takes one list of arrays per column and returns a tuple of
            batches. Needs `batch_sampler`.

    Raises: ValueError: An argument has the wrong value; on reading, the source is empty or used up, or the number of
        values of a row differs from the number of names.

    Example:
        >>> rows = [(1.5, 0), (2.5, 1)]
        >>> data = GeneratorDataset(rows, ["x", "label"], shuffle=False)
        >>> next(data.create_dict_iterator(output_numpy=True))
        {'x': array(1.5), 'label': array(0)}
    """

    def __init__(
        self, source: Any, column_names: str | list[str] | None = None, column_types: Sequence[DTypeLike] | None = None,
        schema: Schema | str | None = None, num_samples: int | None = None, num_parallel_workers: int | None = 1,
        shuffle: bool | None = None, sampler: SamplerLike | None = None, num_shards: int | None = None,
        shard_id: int | None = None, python_multiprocessing: bool = True,
        max_rowsize: int | Sequence[int] | None = None, batch_sampler: Any = None,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        check_workers(_WHERE, num_parallel_workers)
        if schema is not None:
            columns = read_schema(_WHERE, schema).columns
            column_names = column_names or [column.name for column in columns]
            dtypes = [column.dtype for column in columns]
            column_types = column_types or (None if "string" in dtypes else dtypes)
        names = read_names(_WHERE, "column_names", column_names)
        if batch_sampler is not None or collate_fn is not None:
            _check_batches(
                batch_sampler, num_samples=num_samples, shuffle=shuffle, sampler=sampler, num_shards=num_shards,
                shard_id=shard_id,
            )
            super().__init__(ListedBatches(_WHERE, source, names, column_types, batch_sampler, collate_fn))
            return
        row_sampler = choose_sampler(
            _WHERE, sampler=sampler, shuffle=shuffle, num_samples=num_samples, num_shards=num_shards, shard_id=shard_id
        )
        if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
            stage: Stage = IndexedSource(_WHERE, source, names, row_sampler)
        elif callable(source) or isinstance(source, Iterable):
            _check_iterated(shuffle, sampler, num_shards)
            stage = IteratedSource(_WHERE, source, names, num_samples or None)
        else:
            raise checks.fail_type(
                _WHERE, "source must have __getitem__ and __len__, be an iterable or a function that returns one",
                source, "source=a list of tuples, or a generator function",
            )
        super().__init__(stage if column_types is None else DtypeCheck(_WHERE, stage, column_types))


def _check_iterated(shuffle: bool | None, sampler: SamplerLike | None, num_shards: int | None) -> None:
    """Raise or warn if an argument needs a source with `__getitem__`."""
    for name, value in (("sampler", sampler), ("num_shards", num_shards)):
        if value is not None:
            raise checks.fail_value(
                _WHERE, f"{name} needs a source with __getitem__ and __len__", value, f"{name}=None, or such a source"
            )
    if shuffle:
        warnings.warn(
            f"{_WHERE}: shuffle=True needs a source with __getitem__ and __len__; rows keep the source's order. "
            "Write .shuffle(buffer_size).",
            stacklevel=3,
        )


def _check_batches(batch_sampler: Any, **others: Any) -> None:
    if batch_sampler is None:
        raise checks.fail_value(_WHERE, "collate_fn needs batch_sampler", None, "batch_sampler=[[0, 1], [2, 3]]")
    for name, value in others.items():
        if value is not None:
            raise checks.fail_value(_WHERE, f"batch_sampler takes the place of {name}", value, f"{name}=None")
