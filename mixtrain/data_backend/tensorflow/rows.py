"""Rows made by Python code, as a `tf.data.Dataset` that reads them in blocks."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from mixtrain.backend.aligned import aligned_empty
from mixtrain.data_backend.rows import CheckedRows, Row, shapes_of
from mixtrain.data_backend.tensorflow.generated import dataset_of

_MAX_ROWS = 64
_MAX_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True, eq=False)
class PythonRows(CheckedRows):
    """Rows from Python, which can also be read as a `tf.data.Dataset`."""

    @functools.cached_property
    def specs(self) -> tuple[tf.TensorSpec, ...]:
        """The dtypes and ranks of the columns."""
        return row_specs(self.example)

    @functools.cached_property
    def dataset(self) -> tf.data.Dataset:
        """The rows as a `tf.data.Dataset`."""
        blocks = tuple(tf.TensorSpec([None, *spec.shape], spec.dtype) for spec in self.specs)
        # `Dataset.unbatch` ends the process at a row with a dimension of 0, such as an image without boxes
        # (TensorFlow 2.21, in `MaybeMoveSliceToElement`).
        dataset = dataset_of(self.blocks, blocks).flat_map(_rows_of)
        if self.size is None:
            return dataset
        count = tf.data.INFINITE_CARDINALITY if self.size == math.inf else int(self.size)
        return dataset.apply(tf.data.experimental.assert_cardinality(count))

    def blocks(self) -> Iterator[Row]:
        """Yield stacked rows of the same shapes, 1, 2, 4, ... at a time, so that the first comes at once.

        Each row is copied when it is read. The code may reuse its arrays; and TensorFlow (2.21), which uses the memory
        of an aligned array, does not write into it, but it does into a row that it has taken out of it.
        """
        self.failure.error = None
        block: Row = ()
        filled, limit = 0, 1
        with self.failure.keeping():
            try:
                for row in self.rows():
                    if filled and shapes_of(row) != [column.shape[1:] for column in block]:
                        yield _first_rows(block, filled)
                        filled, limit = 0, 1
                    if not filled:
                        block = tuple(_column(limit, value) for value in row)
                    for column, value in zip(block, row, strict=True):
                        column[filled, ...] = value
                    filled += 1
                    if filled == limit:
                        yield block
                        filled, limit = 0, min(2 * limit, _limit(row))
            except Exception:
                if filled:
                    yield _first_rows(block, filled)  # The rows before the one that failed.
                raise
            if filled:
                yield _first_rows(block, filled)


def _rows_of(*columns: tf.Tensor) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(columns)


def row_specs(example: Sequence[np.ndarray]) -> tuple[tf.TensorSpec, ...]:
    """Return the specs that all rows share: dtypes and ranks, not sizes."""
    return tuple(tf.TensorSpec([None] * np.ndim(value), np.asarray(value).dtype) for value in example)


def _limit(row: Row) -> int:
    size = max(1, sum(value.nbytes for value in row))
    return max(1, min(_MAX_ROWS, _MAX_BYTES // size))


def _column(count: int, value: np.ndarray) -> np.ndarray:
    """Return an array for `count` values, whose memory TensorFlow takes over; text may be of any length."""
    return np.empty((count, *value.shape), object) if value.dtype.kind in "USO" else aligned_empty(count, value)


def _first_rows(block: Row, count: int) -> Row:
    return tuple(column[:count] for column in block)
