"""The public `Dataset`: every step returns a new dataset, and rows are read only when an iterator requests them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mixtrain import checks, data_backend
from mixtrain.dataset.batch_steps import BatchSteps
from mixtrain.dataset.cache import DatasetCache, cached
from mixtrain.dataset.columns import read_names
from mixtrain.dataset.combine import Concat, Zip
from mixtrain.dataset.iterators import DatasetIterator, to_output
from mixtrain.dataset.map_stage import map_stage
from mixtrain.dataset.order_steps import Names
from mixtrain.dataset.row_files import save_rows
from mixtrain.dataset.split import split_stage
from mixtrain.dataset.stage import Stage
from mixtrain.dataset.stream import open_pipeline


class Dataset(BatchSteps["Dataset"]):
    """Rows of named columns, and the steps that return new datasets.

    A dataset comes from a source such as `MnistDataset`, `GeneratorDataset` or `NumpySlicesDataset`, or from a step of
    another dataset.

    Args: stage: The last stage of the pipeline, which yields the rows.

    Example:
        >>> from mixtrain.dataset import NumpySlicesDataset
        >>> data = NumpySlicesDataset([1, 2, 3, 4, 5], "x", shuffle=False).map(lambda x: x * 10, "x").batch(2)
        >>> [x.tolist() for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [[10, 20], [30, 40], [50]]
    """

    def _with(self, stage: Stage) -> Dataset:
        return Dataset(stage)

    def map(
        self, operations: Callable[..., Any] | Sequence[Callable[..., Any]], input_columns: Names | None = None,
        output_columns: Names | None = None, num_parallel_workers: int | None = None, *,
        python_multiprocessing: bool = False, max_rowsize: int | Sequence[int] | None = None,
        cache: DatasetCache | None = None, column_order: Names | None = None, offload: bool | None = None,
    ) -> Dataset:
        """Apply transforms and functions to columns.

        Args:
            operations: A transform or a function, or several applied in sequence. A function takes one NumPy array
                per column and returns an array, or a tuple of arrays for several columns. A transform is applied to
                each column. Neighboring transforms run compiled, several rows at a time.
            input_columns: The columns that the first operation takes; the first column by default.
            output_columns: Names of the last operation's results; the input columns by default. If there are as many
                as input columns, they replace these; otherwise they come first, the other columns after them.
            num_parallel_workers: How many threads run transforms; by default as many as there are processors, at most
                `config.get_num_parallel_workers()`. The rows and their order do not depend on it.
            python_multiprocessing: Without effect, as are `max_rowsize` and `offload`.
            cache: A `DatasetCache`: the results are computed once, even random ones, and stored in memory.
            column_order: Which columns to keep, in that order (older MindSpore); all by default.

        Raises: ValueError: A column is unknown; on reading, the functions return another number of columns, or a
            transform does not fit a value.
        """
        if num_parallel_workers is not None:
            checks.integer("map", "num_parallel_workers", num_parallel_workers, at_least=1)
        inputs = self.columns[:1] if input_columns is None else read_names("map", "input_columns", input_columns)
        outputs = inputs if output_columns is None else read_names("map", "output_columns", output_columns)
        stage = map_stage(self._stage, operations, inputs, outputs, num_parallel_workers)
        mapped = Dataset(cached("map", stage, cache))
        return mapped if column_order is None else mapped.project(column_order)

    def zip(self, datasets: Dataset | tuple[Dataset, ...]) -> Dataset:
        """Append the columns of other datasets, row by row, until the shortest ends."""
        return zip_datasets((self, *(datasets if isinstance(datasets, tuple) else (datasets,))))

    def concat(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        """Append the rows of other datasets with the same columns."""
        others = (datasets,) if isinstance(datasets, Dataset) else tuple(datasets)
        return Dataset(Concat([_stage_of("concat", dataset) for dataset in (self, *others)]))

    def __add__(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        return self.concat(datasets)

    def split(self, sizes: list[int] | list[float], randomize: bool = True) -> tuple[Dataset, ...]:
        """Split the rows into datasets that have none in common; each has the same rows in every epoch.

        Args:
            sizes: Number of rows of each part, all rows in total; or fractions, 1 in total.
            randomize: Whether rows are assigned to the parts at random; otherwise each part has consecutive rows.
        """
        checks.boolean("split", "randomize", randomize)
        return tuple(Dataset(part) for part in split_stage(self._stage, self.get_dataset_size(), sizes, randomize))

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Return the dataset that a function returns for this one. `apply_func`: from a dataset to a dataset."""
        result = apply_func(self)
        checks.instance("apply", "the result of apply_func", result, Dataset, "return dataset in apply_func")
        return result

    def flat_map(self, func: Callable[..., Dataset]) -> Dataset:
        """Concatenate the datasets that a function returns for the rows.

        Args: func: Takes one array per column and returns a dataset. It is called immediately, once for each row.
        """
        if not callable(func):
            raise checks.fail_type("flat_map", "func must be a function", func, "flat_map(lambda x: ...)")
        datasets = [func(*row) for row in self.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        stages = [_stage_of("flat_map", dataset) for dataset in datasets]
        if not stages:
            raise checks.fail_value("flat_map", "the dataset must have a row", 0, "a dataset with rows")
        return Dataset(Concat(stages))

    def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> None:
        """Write the rows to files that `MindDataset` reads.

        Args:
            file_name: The path; with several files, the number of the file is appended.
            num_files: Number of files the rows are divided among.
            file_type: "mindrecord".
        """
        checks.one_of("Dataset.save", "file_type", file_type, ("mindrecord",))
        checks.integer("Dataset.save", "num_files", num_files, at_least=1)
        save_rows(file_name, num_files, self.create_dict_iterator(num_epochs=1, output_numpy=True))

    def to_device(self, send_epoch_end: bool = True, create_data_info_queue: bool = False) -> None:
        """Raise NotImplementedError: training transfers rows to the device without a queue.

        Args: send_epoch_end: Not used, as `create_data_info_queue`.
        """
        raise NotImplementedError(
            "Dataset.to_device: expected no queue; got a call. Write model.train(epoch, dataset), which reads ahead "
            "and brings rows to the device."
        )

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DatasetIterator:
        """Return an iterator over rows as dicts from column name to tensor.

        Args:
            num_epochs: How many epochs can be read, each by its own ``for`` loop; -1: no limit.
            output_numpy: Whether to return NumPy arrays instead of tensors.
            do_copy: Without effect: the returned arrays always belong to the caller.
        """
        visible = self._visible()
        names = visible.columns
        return visible._iterator(
            num_epochs,
            lambda row: {name: to_output(v, output_numpy) for name, v in zip(names, row, strict=True)},
        )

    def create_tuple_iterator(
        self, columns: Names | None = None, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DatasetIterator:
        """Return an iterator over rows as lists of tensors.

        Args:
            num_epochs, output_numpy, do_copy: As in `create_dict_iterator`.
            columns: Which columns, in that order; all by default.
        """
        dataset = self._visible() if columns is None else self.project(columns)
        return dataset._iterator(num_epochs, lambda row: [to_output(value, output_numpy) for value in row])

    def __iter__(self) -> DatasetIterator:
        return self.create_tuple_iterator(num_epochs=1)

    def _iterator(self, num_epochs: int, build: Callable[[Any], Any]) -> DatasetIterator:
        if num_epochs != -1:
            checks.integer("dataset iterator", "num_epochs", num_epochs, at_least=1)
        return DatasetIterator(self._stage, build, num_epochs)

    def _visible(self) -> Dataset:
        """Return the dataset without the columns that MindSpore hides as long as their names begin with "_meta-"."""
        names = [name for name in self.columns if not name.startswith("_meta-")]
        return self if len(names) == len(self.columns) else self.project(names)

    @property
    def pipeline(self) -> data_backend.Pipeline:
        """The rows as the backend's pipeline, starting at epoch 0; each pass over it is the next epoch."""
        return self.pipeline_from(0)

    def pipeline_from(self, initial_epoch: int) -> data_backend.Pipeline:
        """Return the backend's pipeline, starting at an epoch; with a seed, as an uninterrupted run reads that epoch.

        Args: initial_epoch: The epoch, from 0.
        """
        checks.integer("pipeline_from", "initial_epoch", initial_epoch, at_least=0)
        return open_pipeline(self._visible()._stage, initial_epoch=initial_epoch)


def zip_datasets(datasets: tuple[Dataset, ...]) -> Dataset:
    """Return a dataset with the columns of several datasets, row by row, until the shortest ends.

    Example:
        >>> from mixtrain.dataset import NumpySlicesDataset
        >>> first, second = NumpySlicesDataset([1, 2], "a"), NumpySlicesDataset([3, 4], "b")
        >>> zip_datasets((first, second)).get_col_names()
        ['a', 'b']

    Source: MindSpore, `mindspore.dataset.zip`.
    """
    checks.instance("zip", "datasets", datasets, tuple, "zip((first, second))")
    if len(datasets) < 2:
        raise checks.fail_value("zip", "datasets must be two or more", len(datasets), "zip((first, second))")
    return Dataset(Zip([_stage_of("zip", dataset) for dataset in datasets]))


def _stage_of(where: str, dataset: Dataset) -> Stage:
    checks.instance(where, "each dataset", dataset, Dataset, "a mixtrain.dataset dataset")
    return dataset._stage
