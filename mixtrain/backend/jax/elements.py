"""Elements on the device: stacked ones, and single ones that are copied there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import jax
import keras
import numpy as np

from mixtrain.backend.aligned import aligned_copy
from mixtrain.backend.jax.device import describe_device
from mixtrain.backend.signatures import Row

# From this size on `device_put` takes less time than a compiled copy.
_LARGE: Final = 2**20


class Stacked(Sequence[Row]):
    def __init__(self, columns: Any) -> None:
        self.columns = columns
        self.first = 0  # The row of the first element.
        self._rows = self._count = len(keras.tree.flatten(columns)[0])

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        row = np.int32(self.first + index % len(self))
        columns = keras.tree.flatten(self.columns)
        if not all(isinstance(column, jax.Array) for column in columns):
            values = [column[row] for column in columns]
        elif self._rows == power_of_two(self._rows):
            values = _row_at(columns, row)
        else:  # `_row_at` would be compiled for each length.
            values = jax.device_put([np.asarray(column)[row] for column in columns])
        return keras.tree.pack_sequence_as(self.columns, values)


class StackedPart(Stacked):
    """Consecutive elements of a `Stacked`, from the row `first` on: the columns stay whole, so nothing is copied."""

    def __init__(self, columns: Any, first: int, count: int) -> None:
        super().__init__(columns)
        self.first = first
        self._count = count


@jax.jit
def _row_at(columns: list[Any], index: Any) -> list[Any]:
    return [jax.lax.dynamic_index_in_dim(column, index, keepdims=False) for column in columns]


def on_device(columns: tuple[np.ndarray, ...]) -> Row:
    """Copy columns to the device; text stays on the host."""
    if all(column.dtype.kind not in "USO" for column in columns):
        return jax.device_put(columns)  # type: ignore[no-any-return]
    return tuple(column if column.dtype.kind in "USO" else jax.device_put(column) for column in columns)


class DevicePut:
    # Small elements go by a compiled copy, which takes a quarter of `device_put`'s time. It is compiled for each spec,
    # so only from the second element of a spec in a row. On a CPU XLA takes over the memory of large elements: to copy
    # 64 MiB into new memory of XLA's takes eight times as long as into NumPy's.
    _previous_spec: tuple[Any, ...] | None = None
    _lent: Row = ()

    @property
    def ahead(self) -> bool:
        return describe_device().kind != "CPU"

    def __call__(self, columns: tuple[np.ndarray, ...]) -> Row:
        spec = tuple((column.shape, column.dtype) for column in columns)
        numeric = all(column.dtype.kind not in "USO" for column in columns)
        repeated, self._previous_spec = numeric and spec == self._previous_spec, spec
        return _compiled_copy(columns) if repeated and bytes_of(columns) < _LARGE else on_device(columns)

    def lend(self, columns: tuple[np.ndarray, ...]) -> Row:
        if self.ahead:
            self._lent = on_device(columns)
            return self._lent
        return self(tuple(map(aligned_copy if bytes_of(columns) >= _LARGE else np.array, columns)))

    def take_back(self) -> None:
        jax.block_until_ready(self._lent)
        self._lent = ()


@jax.jit
def _compiled_copy(columns: Row) -> Row:
    return columns


def bytes_of(row: Sequence[np.ndarray]) -> int:
    """Return the size of a row in bytes."""
    return sum(np.asarray(value).nbytes for value in row)


def power_of_two(count: int) -> int:
    """Return the largest power of two up to a count."""
    return 1 << (count.bit_length() - 1)
