"""NumpySlicesDataset: the rows of arrays and lists in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.columns import read_names
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.sampling import SamplerLike, check_workers, choose_sampler
from mixtrain.dataset.source import ArraySource, IndexedSource

_WHERE = "NumpySlicesDataset"


class NumpySlicesDataset(Dataset):
    """Rows along the first axis of arrays or lists.

    Args:
        num_samples, shuffle, sampler, num_shards, shard_id: As in `Cifar10Dataset`.
        data: An array or list for one column; a tuple of them, or a dict from column name to them, for several.
        column_names: Names of the columns; by default the keys of the dict, or column_0, column_1, ...
        num_parallel_workers: Without effect.

    Example:
        >>> data = NumpySlicesDataset({"x": [1, 2], "y": [3, 4]}, shuffle=False)
        >>> [[x.tolist(), y.tolist()] for x, y in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [[1, 3], [2, 4]]
    """

    def __init__(
        self, data: Any, column_names: str | list[str] | None = None, num_samples: int | None = None,
        num_parallel_workers: int | None = 1, shuffle: bool | None = None, sampler: SamplerLike | None = None,
        num_shards: int | None = None, shard_id: int | None = None,
    ) -> None:
        check_workers(_WHERE, num_parallel_workers)
        names, values = _read_columns(data)
        if column_names is not None:
            names = read_names(_WHERE, "column_names", column_names)
            if len(names) != len(values):
                raise checks.fail_value(
                    _WHERE, f"column_names must have {len(values)} names, one for each column", column_names,
                    "one for each",
                )
        sampler = choose_sampler(
            _WHERE, sampler=sampler, shuffle=shuffle, num_samples=num_samples, num_shards=num_shards, shard_id=shard_id
        )
        columns = [_to_column(name, value) for name, value in zip(names, values, strict=True)]
        lengths = {name: len(column) for name, column in zip(names, columns, strict=True)}
        if len(set(lengths.values())) != 1 or 0 in lengths.values():
            raise checks.fail_value(
                _WHERE, "all columns must have the same number of rows, at least 1", lengths, "columns of equal length"
            )
        arrays = [column for column in columns if isinstance(column, np.ndarray)]
        if len(arrays) == len(columns):
            super().__init__(ArraySource(_WHERE, arrays, names, sampler))
        else:
            super().__init__(IndexedSource(_WHERE, list(zip(*columns, strict=True)), names, sampler))


def _read_columns(data: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the default names of the columns, and the columns."""
    if isinstance(data, dict):
        values = tuple(getattr(value, "values", value) for value in data.values())  # A pandas column has `values`.
        return read_names(_WHERE, "data's keys", list(data)), values
    values = data if isinstance(data, tuple) else (data,)
    return tuple(f"column_{index}" for index in range(len(values))), values


def _to_column(name: str, value: Any) -> np.ndarray | list[Any]:
    """Return a column as one array, or as a list if its rows have different shapes."""
    if not hasattr(value, "__len__") or isinstance(value, (str, bytes)):
        raise checks.fail_type(
            _WHERE, f'column "{name}" must be an array or a list', value, "NumpySlicesDataset([1, 2, 3])"
        )
    try:
        array = np.asarray(value)
    except ValueError:
        return list(value)
    if array.dtype.hasobject or array.ndim == 0:
        raise checks.fail_type(
            _WHERE, f'column "{name}" must have numbers or strings', value,
            "NumpySlicesDataset(np.array(values, dtype))",
        )
    return array
