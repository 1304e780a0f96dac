"""The steps of a dataset that reorder, repeat, drop or filter rows, or select columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mixtrain import checks
from mixtrain.dataset.columns import find, read_names
from mixtrain.dataset.dataset_info import DatasetInfo
from mixtrain.dataset.order import Filter, Repeat, Shuffle, Skip, SyncPoint, Take, sync_points
from mixtrain.dataset.sampler import BuiltinSampler
from mixtrain.dataset.transform import Select

_DatasetT = TypeVar("_DatasetT", bound="OrderSteps[Any]")
Names = str | Sequence[str]


class OrderSteps(DatasetInfo[_DatasetT]):
    """Base class of `Dataset` with these steps."""

    def shuffle(self, buffer_size: int) -> _DatasetT:
        """Shuffle the rows, in a new order in each epoch.

        Args: buffer_size: Number of rows from which the next one is sampled, at least 2; the number of rows in an epoch
            shuffles them fully.
        """
        return self._with(Shuffle(self._stage, checks.integer("shuffle", "buffer_size", buffer_size, at_least=2)))

    def repeat(self, count: int | None = None) -> _DatasetT:
        """Repeat the rows `count` times in an epoch; infinitely if it is None or -1."""
        if count is None or count == -1:
            return self._with(Repeat(self._stage, None))
        return self._with(Repeat(self._stage, checks.integer("repeat", "count", count, at_least=1)))

    def sync_wait(
        self, condition_name: str, num_batch: int = 1, callback: Callable[[Any], Any] | None = None
    ) -> _DatasetT:
        """Name this point of the pipeline for `sync_update`; rows are computed when they are read, so nothing waits.

        Args:
            condition_name: The name.
            num_batch: Without effect, at least 1: how many rows MindSpore computes before it waits.
            callback: Called with the data of each update.
        """
        checks.instance("sync_wait", "condition_name", condition_name, str, 'condition_name="policy"')
        checks.integer("sync_wait", "num_batch", num_batch, at_least=1)
        if condition_name in {point.name for point in sync_points(self._stage)}:
            raise RuntimeError(f"sync_wait: condition_name must be new; got {condition_name!r}. Write another name.")
        return self._with(SyncPoint(self._stage, condition_name, callback))

    def sync_update(self, condition_name: str, num_batch: int | None = None, data: Any = None) -> None:
        """Call the callback of the point that `sync_wait` named `condition_name`, with `data`; `num_batch` has no
        effect.
        """
        points = {point.name: point for point in sync_points(self._stage)}
        callback = points[checks.one_of("sync_update", "condition_name", condition_name, tuple(points))].callback
        if callback is not None:
            callback(data)

    def disable_sync(self) -> None:
        """Do nothing: no point of `sync_wait` holds up the rows."""

    def take(self, count: int = -1) -> _DatasetT:
        """Keep the first `count` rows; all if it is -1."""
        if count == -1:
            return self._with(self._stage)
        return self._with(Take(self._stage, checks.integer("take", "count", count, at_least=1)))

    def skip(self, count: int) -> _DatasetT:
        """Drop the first `count` rows."""
        return self._with(Skip(self._stage, checks.integer("skip", "count", count, at_least=0)))

    def filter(
        self, predicate: Callable[..., Any], input_columns: Names | None = None, num_parallel_workers: int | None = None
    ) -> _DatasetT:
        """Keep the rows for which a function is true.

        Args:
            predicate: Takes one array per input column and returns a bool.
            input_columns: The columns that it takes; all by default.
            num_parallel_workers: Without effect.
        """
        if not callable(predicate):
            raise checks.fail_type("filter", "predicate must be a function", predicate, "filter(lambda x: x.any())")
        inputs = self.columns if input_columns is None else read_names("filter", "input_columns", input_columns)
        return self._with(Filter(self._stage, predicate, inputs))

    def project(self, columns: Names) -> _DatasetT:
        """Keep the named columns, in that order."""
        names = read_names("project", "columns", columns)
        return self._with(Select(self._stage, find("project", "columns", self.columns, names), names))

    def rename(self, input_columns: Names, output_columns: Names) -> _DatasetT:
        """Rename columns. `input_columns`: the columns; `output_columns`: their new names, as many."""
        old = read_names("rename", "input_columns", input_columns)
        new = read_names("rename", "output_columns", output_columns)
        find("rename", "input_columns", self.columns, old)
        if len(old) != len(new):
            raise checks.fail_value(
                "rename", f"output_columns must have {len(old)} names", output_columns, "one for each"
            )
        new_names = dict(zip(old, new, strict=True))
        names = [new_names.get(name, name) for name in self.columns]
        read_names("rename", "the columns afterwards", names)
        return self._with(Select(self._stage, range(len(names)), names))

    def use_sampler(self, new_sampler: BuiltinSampler) -> None:
        """Replace the sampler of the source.

        Args: new_sampler: The sampler. For concatenated datasets, a `DistributedSampler` that does not shuffle: it
            assigns the rows of all of them to the shards in turn.
        """
        checks.instance("use_sampler", "new_sampler", new_sampler, BuiltinSampler, "SequentialSampler()")
        self._replace_stage(self._stage.with_sampler(new_sampler))

    def add_sampler(self, new_sampler: BuiltinSampler) -> None:
        """Select from the rows of the source's sampler, which becomes the child of `new_sampler`."""
        checks.instance("add_sampler", "new_sampler", new_sampler, BuiltinSampler, "SequentialSampler()")
        if self._stage.sampler is not None:
            new_sampler.add_child(self._stage.sampler)
        self._replace_stage(self._stage.with_sampler(new_sampler))
