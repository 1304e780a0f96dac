"""The dataset that users hold: each step returns a new one, and nothing is read before an iterator asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mixtrain import checks, engine
from mixtrain.dataset.batch import Batch, BatchInfo, FunctionBatch
from mixtrain.dataset.columns import find, read_names
from mixtrain.dataset.combine import Concat, Zip
from mixtrain.dataset.facts import DatasetFacts
from mixtrain.dataset.iterators import DatasetIterator, to_output
from mixtrain.dataset.order import Filter, Repeat, Shuffle, Skip, Take
from mixtrain.dataset.split import split_stage
from mixtrain.dataset.stage import Stage
from mixtrain.dataset.stream import open_pipeline
from mixtrain.dataset.transform import Map, Select

Names = str | Sequence[str]


class Dataset(DatasetFacts):
    """Rows of named columns, and the steps that make new datasets of them.

    A dataset comes from `GeneratorDataset`, `NumpySlicesDataset` or a step of another dataset.

    Example:
        >>> from mixtrain.dataset import NumpySlicesDataset
        >>> data = NumpySlicesDataset([1, 2, 3, 4, 5], "x", shuffle=False).map(lambda x: x * 10, "x").batch(2)
        >>> [x.tolist() for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [[10, 20], [30, 40], [50]]

    Source: MindSpore, `mindspore.dataset.Dataset`.
    """

    def batch(
        self,
        batch_size: int | Callable[[BatchInfo], int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        *,
        per_batch_map: Callable[..., Any] | None = None,
        input_columns: Names | None = None,
        output_columns: Names | None = None,
        python_multiprocessing: bool = False,
        max_rowsize: Any = None,
    ) -> Dataset:
        """Stack consecutive rows on a new first axis.

        Args:
            batch_size: Rows in a batch, or a function from `BatchInfo` to that number.
            drop_remainder: Whether to drop the last batch where it is smaller.
            num_parallel_workers: Without effect, as are `python_multiprocessing` and `max_rowsize`.
            per_batch_map: A function of one list of arrays per input column, then `BatchInfo`, to such lists.
            input_columns: The columns that `per_batch_map` takes; all by default.
            output_columns: Names of its results; those of the input columns by default.

        Raises:
            TypeError: `batch_size` is no int; on reading, rows of one column differ in dtype.
            ValueError: `batch_size` is below 1, a column is unknown; on reading, rows of one column differ in shape.
        """
        if not callable(batch_size):
            checks.integer("batch", "batch_size", batch_size, at_least=1, example=32)
        checks.boolean("batch", "drop_remainder", drop_remainder)
        if per_batch_map is None:
            if input_columns is not None or output_columns is not None:
                raise checks.fail_value(
                    "batch", "input_columns and output_columns belong to per_batch_map",
                    input_columns or output_columns, "per_batch_map=..., or neither",
                )
            if not callable(batch_size):
                return Dataset(Batch(self._stage, batch_size, drop_remainder))
        inputs = self.columns if input_columns is None else read_names("batch", "input_columns", input_columns)
        outputs = inputs if output_columns is None else read_names("batch", "output_columns", output_columns)
        return Dataset(FunctionBatch(self._stage, batch_size, drop_remainder, per_batch_map, inputs, outputs))

    def map(
        self,
        operations: Callable[..., Any] | Sequence[Callable[..., Any]],
        input_columns: Names | None = None,
        output_columns: Names | None = None,
        num_parallel_workers: int | None = None,
        *,
        python_multiprocessing: bool = False,
        max_rowsize: Any = None,
        cache: Any = None,
        offload: bool | None = None,
    ) -> Dataset:
        """Apply functions to columns.

        Args:
            operations: A function, or several applied one after the other. Each takes one NumPy array per column and
                returns an array, or a tuple of arrays for several columns.
            input_columns: What the first function takes; the first column by default.
            output_columns: Names of the last one's results; those of the input columns by default. As many as the
                input columns: they take their places; otherwise they come first, the other columns after them.
            num_parallel_workers: Without effect, as are the arguments after it.

        Raises:
            TypeError: An operation cannot be called.
            ValueError: A column is unknown; on reading, the functions return another number of columns.
        """
        functions = _read_operations(operations)
        inputs = self.columns[:1] if input_columns is None else read_names("map", "input_columns", input_columns)
        outputs = inputs if output_columns is None else read_names("map", "output_columns", output_columns)
        return Dataset(Map(self._stage, functions, inputs, outputs))

    def shuffle(self, buffer_size: int) -> Dataset:
        """Put rows in random order, each epoch in another.

        Args:
            buffer_size: From how many rows the next is drawn, at least 2; as many as an epoch has mixes them fully.
        """
        return Dataset(Shuffle(self._stage, checks.integer("shuffle", "buffer_size", buffer_size, at_least=2)))

    def repeat(self, count: int | None = None) -> Dataset:
        """Give the rows `count` times in an epoch; without end where it is None or -1."""
        if count is None or count == -1:
            return Dataset(Repeat(self._stage, None))
        return Dataset(Repeat(self._stage, checks.integer("repeat", "count", count, at_least=1)))

    def take(self, count: int = -1) -> Dataset:
        """Keep the first `count` rows; all where it is -1."""
        if count == -1:
            return Dataset(self._stage)
        return Dataset(Take(self._stage, checks.integer("take", "count", count, at_least=1)))

    def skip(self, count: int) -> Dataset:
        """Drop the first `count` rows."""
        return Dataset(Skip(self._stage, checks.integer("skip", "count", count, at_least=0)))

    def filter(
        self,
        predicate: Callable[..., Any],
        input_columns: Names | None = None,
        num_parallel_workers: int | None = None,
    ) -> Dataset:
        """Keep the rows for which `predicate`, a function of the input columns (all by default), is true."""
        if not callable(predicate):
            raise checks.fail_type("filter", "predicate must be a function", predicate, "filter(lambda x: x.any())")
        inputs = self.columns if input_columns is None else read_names("filter", "input_columns", input_columns)
        return Dataset(Filter(self._stage, predicate, inputs))

    def project(self, columns: Names) -> Dataset:
        """Keep the named columns, in that order."""
        names = read_names("project", "columns", columns)
        return Dataset(Select(self._stage, find("project", "columns", self.columns, names), names))

    def rename(self, input_columns: Names, output_columns: Names) -> Dataset:
        """Give the input columns the names `output_columns`."""
        old = read_names("rename", "input_columns", input_columns)
        new = read_names("rename", "output_columns", output_columns)
        find("rename", "input_columns", self.columns, old)
        if len(old) != len(new):
            raise checks.fail_value(
                "rename", f"output_columns must have {len(old)} names", output_columns, "one for each"
            )
        names = [dict(zip(old, new, strict=True)).get(name, name) for name in self.columns]
        read_names("rename", "the columns afterwards", names)
        return Dataset(Select(self._stage, range(len(names)), names))

    def zip(self, datasets: Dataset | tuple[Dataset, ...]) -> Dataset:
        """Put the columns of other datasets beside these, row by row, until the shortest ends."""
        return zip_datasets((self, *(datasets if isinstance(datasets, tuple) else (datasets,))))

    def concat(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        """Give the rows of other datasets, of the same columns, after these."""
        others = (datasets,) if isinstance(datasets, Dataset) else tuple(datasets)
        return Dataset(Concat([_stage_of("concat", dataset) for dataset in (self, *others)]))

    def __add__(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        return self.concat(datasets)

    def split(self, sizes: list[int] | list[float], randomize: bool = True) -> tuple[Dataset, ...]:
        """Divide the rows among datasets that share none, the same rows in every epoch.

        Args:
            sizes: Rows of each part, which add up to all; or shares, which add up to 1.
            randomize: Whether rows are dealt out at random; otherwise each part has rows that follow each other.
        """
        checks.boolean("split", "randomize", randomize)
        return tuple(Dataset(part) for part in split_stage(self._stage, self.get_dataset_size(), sizes, randomize))

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Return what a function makes of this dataset."""
        made = apply_func(self)
        checks.instance("apply", "the result of apply_func", made, Dataset, "return dataset in apply_func")
        return made

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DatasetIterator:
        """Return an iterator over rows as dicts from column name to tensor.

        Args:
            num_epochs: How many epochs can be read, each with its own ``for`` loop; -1: no limit.
            output_numpy: Whether to give NumPy arrays instead of tensors.
            do_copy: Without effect: what is given is the reader's own.
        """
        names = self.columns
        return self._iterator(
            num_epochs,
            lambda row: {name: to_output(v, output_numpy) for name, v in zip(names, row, strict=True)},
        )

    def create_tuple_iterator(
        self,
        columns: Names | None = None,
        num_epochs: int = -1,
        output_numpy: bool = False,
        do_copy: bool = False,
    ) -> DatasetIterator:
        """Return an iterator over rows as lists of tensors, in the order of `columns`; see `create_dict_iterator`."""
        chosen = self if columns is None else self.project(columns)
        return chosen._iterator(num_epochs, lambda row: [to_output(value, output_numpy) for value in row])

    def __iter__(self) -> DatasetIterator:
        return self.create_tuple_iterator(num_epochs=1)

    def _iterator(self, num_epochs: int, build: Callable[[Any], Any]) -> DatasetIterator:
        if num_epochs != -1:
            checks.integer("dataset iterator", "num_epochs", num_epochs, at_least=1)
        return DatasetIterator(self._stage, build, num_epochs)

    @property
    def pipeline(self) -> engine.Pipeline:
        """The rows as the engine's stream, from epoch 0 on; each pass over it is the next epoch."""
        return self.pipeline_from(0)

    def pipeline_from(self, initial_epoch: int) -> engine.Pipeline:
        """Return the engine's stream from an epoch on: under one seed, what an uninterrupted run reads from there."""
        checks.integer("pipeline_from", "initial_epoch", initial_epoch, at_least=0)
        return open_pipeline(self._stage, initial_epoch=initial_epoch)


def zip_datasets(datasets: tuple[Dataset, ...]) -> Dataset:
    """Return the rows of several datasets side by side, as many as the shortest has.

    Example:
        >>> from mixtrain.dataset import NumpySlicesDataset
        >>> one, two = NumpySlicesDataset([1, 2], "a"), NumpySlicesDataset([3, 4], "b")
        >>> zip_datasets((one, two)).get_col_names()
        ['a', 'b']

    Source: MindSpore, `mindspore.dataset.zip`.
    """
    checks.instance("zip", "datasets", datasets, tuple, "zip((first, second))")
    if len(datasets) < 2:
        raise checks.fail_value("zip", "datasets must be two or more", len(datasets), "zip((first, second))")
    return Dataset(Zip([_stage_of("zip", dataset) for dataset in datasets]))


def _read_operations(operations: Any) -> list[Callable[..., Any]]:
    functions = list(operations) if isinstance(operations, (list, tuple)) else [operations]
    for function in functions:
        if not callable(function):
            raise checks.fail_type("map", "operations must be functions", function, "map(lambda x: x / 255)")
    if not functions:
        raise checks.fail_value("map", "operations must have a function", operations, "map(lambda x: x / 255)")
    return functions


def _stage_of(where: str, dataset: Dataset) -> Stage:
    checks.instance(where, "each dataset", dataset, Dataset, "a mixtrain.dataset dataset")
    return dataset._stage
