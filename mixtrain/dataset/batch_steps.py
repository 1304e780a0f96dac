"""The steps of a dataset that stack rows: batch, and its variants for rows of different shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from mixtrain import checks
from mixtrain.dataset.batch import Batch, BatchInfo, FunctionBatch
from mixtrain.dataset.bucket import BucketBatch, read_buckets
from mixtrain.dataset.columns import Replacement, read_names
from mixtrain.dataset.order_steps import Names, OrderSteps
from mixtrain.dataset.padding import Padding
from mixtrain.dataset.sampling import check_workers

_DatasetT = TypeVar("_DatasetT", bound="BatchSteps[Any]")


class BatchSteps(OrderSteps[_DatasetT]):
    """Base class of `Dataset` with these steps."""

    def batch(
        self, batch_size: int | Callable[[BatchInfo], int], drop_remainder: bool = False,
        num_parallel_workers: int | None = None, *, per_batch_map: Callable[..., Any] | None = None,
        input_columns: Names | None = None, output_columns: Names | None = None, python_multiprocessing: bool = False,
        max_rowsize: int | Sequence[int] | None = None, pad_info: Mapping[str, Any] | None = None,
        column_order: Names | None = None,
    ) -> _DatasetT:
        """Stack consecutive rows on a new first axis.

        Args:
            batch_size: Rows in a batch, or a function from `BatchInfo` to that number.
            drop_remainder: Whether to drop the last batch if it is smaller.
            num_parallel_workers: Without effect.
            per_batch_map: A function from one list of arrays per input column, then `BatchInfo`, to such lists.
            input_columns: The columns that `per_batch_map` takes; all by default.
            output_columns: Names of its results; the input columns by default.
            python_multiprocessing: Without effect, as is `max_rowsize`.
            pad_info: How to pad rows, see `padded_batch` (older MindSpore); by default rows are not padded.
            column_order: Which columns to keep, in that order (older MindSpore); all by default.

        Raises:
            TypeError: `batch_size` is not an int; on reading, rows of one column differ in dtype.
            ValueError: `batch_size` is below 1, a column is unknown; on reading, rows of one column differ in shape.
        """
        check_batch_size("batch", batch_size, drop_remainder)
        check_workers("batch", num_parallel_workers)
        if column_order is not None:
            names = read_names("batch", "column_order", column_order)
            return self.batch(
                batch_size, drop_remainder, per_batch_map=per_batch_map, input_columns=input_columns,
                output_columns=output_columns, pad_info=pad_info,
            ).project(names)
        if per_batch_map is None:
            if input_columns is not None or output_columns is not None:
                raise checks.fail_value(
                    "batch", "input_columns and output_columns belong to per_batch_map",
                    input_columns or output_columns, "per_batch_map=..., or neither",
                )
            if not callable(batch_size) and pad_info is None:
                return self._with(Batch(self._stage, batch_size, drop_remainder))
        inputs = self.columns if input_columns is None else read_names("batch", "input_columns", input_columns)
        outputs = inputs if output_columns is None else read_names("batch", "output_columns", output_columns)
        columns = Replacement("batch", self.columns, inputs, outputs).columns
        padding = None if pad_info is None else Padding("batch", columns, pad_info)
        return self._with(
            FunctionBatch(self._stage, batch_size, drop_remainder, per_batch_map, inputs, outputs, padding)
        )

    def padded_batch(
        self, batch_size: int | Callable[[BatchInfo], int], drop_remainder: bool = False,
        num_parallel_workers: int | None = None, pad_info: Mapping[str, Any] | None = None,
    ) -> _DatasetT:
        """Pad consecutive rows to one shape, and stack them on a new first axis.

        Args:
            batch_size, drop_remainder, num_parallel_workers: As in `batch`.
            pad_info: From column name to the shape to pad to and the value to pad with. None as a size, or as the
                whole shape, means the longest row of the batch. Longer rows are truncated. An empty dict pads all
                columns with 0; None pads nothing.

        Example:
            >>> import numpy as np
            >>> from mixtrain.dataset import GeneratorDataset
            >>> rows = GeneratorDataset([np.array([1]), np.array([2, 3])], "x", shuffle=False)
            >>> next(iter(rows.padded_batch(2, pad_info={"x": ([3], -1)})))[0].numpy().tolist()
            [[1, -1, -1], [2, 3, -1]]
        """
        return self.batch(batch_size, drop_remainder, num_parallel_workers, pad_info=pad_info)

    def bucket_batch_by_length(
        self, column_names: Names, bucket_boundaries: Sequence[int], bucket_batch_sizes: Sequence[int],
        element_length_function: Callable[..., int] | None = None, pad_info: Mapping[str, Any] | None = None,
        pad_to_bucket_boundary: bool = False, drop_remainder: bool = False,
    ) -> _DatasetT:
        """Stack rows of similar length, padded to one shape.

        Args:
            column_names: The columns that `element_length_function` takes.
            bucket_boundaries: Increasing lengths: a row shorter than the first is in the first bucket, and so on.
            bucket_batch_sizes: Rows in a batch of each bucket, one more than there are boundaries.
            element_length_function: Returns the length of a row; by default that of the first axis of the one column.
            pad_info: See `padded_batch`; None pads all columns with 0.
            pad_to_bucket_boundary: Whether None as a size means one less than the bucket's boundary.
            drop_remainder: Whether to drop incomplete batches at the end of an epoch.
        """
        names = read_names("bucket_batch_by_length", "column_names", column_names)
        padding = Padding("bucket_batch_by_length", self.columns, {} if pad_info is None else pad_info)
        return self._with(
            BucketBatch(
                self._stage, names, read_buckets(bucket_boundaries, bucket_batch_sizes), element_length_function,
                padding, pad_to_bucket_boundary, drop_remainder,
            )
        )


def check_batch_size(where: str, batch_size: Any, drop_remainder: Any) -> None:
    """Raise if the size is neither a positive int nor a function, or `drop_remainder` is not a bool."""
    if not callable(batch_size):
        checks.integer(where, "batch_size", batch_size, at_least=1, example=32)
    checks.boolean(where, "drop_remainder", drop_remainder)
