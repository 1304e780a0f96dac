"""The stage that batches rows of similar length: each row goes into the bucket of its length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mixtrain import checks
from mixtrain.dataset.batch import stack_lists
from mixtrain.dataset.columns import find
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.padding import Padding
from mixtrain.dataset.stage import Row, Stage

_WHERE = "bucket_batch_by_length"
Buckets = tuple[tuple[int | None, int], ...]


class BucketBatch(Stage):
    """Batches of rows of one bucket, given out when it is full; what remains comes at the end, bucket by bucket.

    Args:
        columns: What the length is found from.
        buckets: The boundary that lengths stay below (None: any length) and the batch size of each.
        length: A function of these columns; None: the length of the one column.
        padding: Brings the rows of a batch to one shape.
        to_boundary: Whether sizes left open in `padding` are one less than the boundary.
    """

    def __init__(
        self,
        parent: Stage,
        columns: Sequence[str],
        buckets: Buckets,
        length: Callable[..., int] | None,
        padding: Padding,
        to_boundary: bool,
        drop_remainder: bool,
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
    def even(self) -> bool:
        return False  # The buckets differ.

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        waiting: list[list[Row]] = [[] for _ in self._buckets]
        for row in self.parents[0].rows(pass_seed):
            place = self._place(self._length(*(row[index] for index in self._inputs)))
            waiting[place].append(row)
            if len(waiting[place]) == self._buckets[place][1]:
                yield self._stack(place, waiting[place])
                waiting[place] = []
        for place, rows in enumerate(waiting):
            if rows and not self._drop_remainder:
                yield self._stack(place, rows)

    def _place(self, length: Any) -> int:
        wanted = checks.integer(_WHERE, "the length of a row", int(length), at_least=0)
        return next(place for place, (limit, _) in enumerate(self._buckets) if limit is None or wanted < limit)

    def _stack(self, place: int, rows: Sequence[Row]) -> Row:
        padding = self._padding
        if self._to_boundary:
            limit = self._buckets[place][0]
            if limit is None:
                raise checks.fail_value(
                    _WHERE, "pad_to_bucket_boundary needs rows below the last boundary", "a longer row",
                    "a larger last boundary",
                )
            padding = padding.at_most(limit - 1)
        return stack_lists(self.columns, list(zip(*rows, strict=True)), padding)


def read_buckets(boundaries: Any, sizes: Any) -> Buckets:
    """Return the boundary and batch size of each bucket.

    Raises:
        ValueError: The boundaries do not increase, or there is not one size more than boundaries.
    """
    for name, values in (("bucket_boundaries", boundaries), ("bucket_batch_sizes", sizes)):
        checks.instance(_WHERE, name, values, (list, tuple), f"{name}=[10, 20]")
        for value in values:
            checks.integer(_WHERE, f"each of {name}", value, at_least=1)
    if not boundaries or any(one >= other for one, other in zip(boundaries, boundaries[1:], strict=False)):
        raise checks.fail_value(_WHERE, "bucket_boundaries must increase", boundaries, "bucket_boundaries=[10, 20]")
    if len(sizes) != len(boundaries) + 1:
        raise checks.fail_value(
            _WHERE, f"bucket_batch_sizes must have {len(boundaries) + 1} numbers", sizes, "one more than boundaries"
        )
    return tuple(zip((*boundaries, None), sizes, strict=True))


def _first_axis(value: Any) -> int:
    return int(value.shape[0]) if value.ndim else 0
