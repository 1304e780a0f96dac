"""The stage that batches rows of similar length, sorted into buckets by their length."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mixtrain import checks
from mixtrain.dataset.batch import stack_lists
from mixtrain.dataset.columns import find
from mixtrain.dataset.padding import Padding
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row, Stage

_WHERE = "bucket_batch_by_length"
Buckets = tuple[tuple[int | None, int], ...]


class BucketBatch(Stage):
    """Batches of the rows of one bucket, yielded when it is full; incomplete batches come at the end, by bucket.

    `columns`: The columns that the length is computed from. `buckets`: The exclusive upper boundary of lengths (None:
    any length) and the batch size of each bucket. `length`: A function of these columns; None: the length of the one
    column. `padding`: Pads the rows of a batch to one shape. `to_boundary`: Whether sizes that are None in `padding`
    are one less than the boundary.
    """

    def __init__(
        self, parent: Stage, columns: Sequence[str], buckets: Buckets, length: Callable[..., int] | None,
        padding: Padding, to_boundary: bool, drop_remainder: bool,
    ) -> None:
        super().__init__(parent.columns, parent)
        self._inputs = find(_WHERE, "column_names", parent.columns, columns)
        if length is None and len(columns) != 1:
            raise checks.fail_value(
                _WHERE, "without element_length_function there must be one column", columns, "element_length_function"
            )
        self._buckets = buckets
        self._length = _first_axis if length is None else length
        self._padding = padding
        self._to_boundary = checks.boolean(_WHERE, "pad_to_bucket_boundary", to_boundary)
        self._drop_remainder = checks.boolean(_WHERE, "drop_remainder", drop_remainder)

    @property
    def size(self) -> int | None:
        return None

    @property
    def batch_size(self) -> int:
        return 1

    @property
    def uniform(self) -> bool:
        return False  # The batches of two buckets may have different sizes.

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        pending: list[list[Row]] = [[] for _ in self._buckets]
        for row in self.parents[0].rows(pass_seed):
            bucket = self._bucket_of(self._length(*(row[index] for index in self._inputs)))
            pending[bucket].append(row)
            if len(pending[bucket]) == self._buckets[bucket][1]:
                yield self._stack(bucket, pending[bucket])
                pending[bucket] = []
        for bucket, rows in enumerate(pending):
            if rows and not self._drop_remainder:
                yield self._stack(bucket, rows)

    def _bucket_of(self, value: Any) -> int:
        length = checks.integer(_WHERE, "the length of a row", int(value), at_least=0)
        return next(index for index, (boundary, _) in enumerate(self._buckets) if boundary is None or length < boundary)

    def _stack(self, bucket: int, rows: Sequence[Row]) -> Row:
        padding = self._padding
        if self._to_boundary:
            boundary = self._buckets[bucket][0]
            if boundary is None:
                raise checks.fail_value(
                    _WHERE, "pad_to_bucket_boundary needs rows below the last boundary", "a longer row",
                    "a larger last boundary",
                )
            padding = padding.with_size(boundary - 1)
        return stack_lists(self.columns, list(zip(*rows, strict=True)), padding)


def read_buckets(boundaries: Any, sizes: Any) -> Buckets:
    """Return the boundary and batch size of each bucket."""
    for name, values in (("bucket_boundaries", boundaries), ("bucket_batch_sizes", sizes)):
        checks.instance(_WHERE, name, values, (list, tuple), f"{name}=[10, 20]")
        for value in values:
            checks.integer(_WHERE, f"each of {name}", value, at_least=1)
    if not boundaries or any(low >= high for low, high in itertools.pairwise(boundaries)):
        raise checks.fail_value(_WHERE, "bucket_boundaries must increase", boundaries, "bucket_boundaries=[10, 20]")
    if len(sizes) != len(boundaries) + 1:
        raise checks.fail_value(
            _WHERE, f"bucket_batch_sizes must have {len(boundaries) + 1} numbers", sizes, "one more than boundaries"
        )
    return tuple(zip((*boundaries, None), sizes, strict=True))


def _first_axis(value: Any) -> int:
    return int(value.shape[0]) if value.ndim else 0
