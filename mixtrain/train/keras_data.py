"""Turn the data arguments of Keras's `fit` and `evaluate` into datasets of batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks, data_backend
from mixtrain.train.feed import DictBatches, Feed, as_batch
from mixtrain.typing import DatasetLike, TensorLike, Tree

BATCH_SIZE = 32
# What takes batches in place of a method of Keras's.
_FOR_BATCHES: Final = {"Model.fit": "model.train(1, batches)", "Model.evaluate": "model.eval(batches)"}


@dataclasses.dataclass(frozen=True)
class KerasData:
    """The data arguments of Keras's `fit` and `evaluate`.

    `where`: "Model.fit" or "Model.evaluate", for errors. `x`: An array, a list, tuple or dict of arrays, or a dataset
    of batches ``(x, y)`` or ``(x, y, sample_weight)``. `y`: Labels, shaped as `x`; None where `x` is a dataset, or the
    network needs none. `sample_weight`: A weight for each row. `class_weight`: A weight for the rows of each class.
    `batch_size`: Rows of a batch; None for 32. A dataset has its own. `steps`: Batches of an epoch; None for all.
    `shuffle`: Whether to shuffle the rows of arrays, or the batches of a `PyDataset`, before each epoch. `continues`:
    Whether an epoch of `steps` starts where the last one ended. `dicts`: What a batch of a dataset that is a dict
    holds. `keeps`: Whether the batches of a generator are kept, so that each epoch has the same.
    """

    where: str
    x: Tree
    y: Tree | None = None
    sample_weight: TensorLike | None = None
    class_weight: Mapping[int, float] | None = None
    batch_size: int | None = None
    steps: int | None = None
    shuffle: bool = False
    continues: bool = False
    dicts: DictBatches = "columns"
    keeps: bool = False

    def __post_init__(self) -> None:
        if self.x is None:
            raise checks.fail_type(self.where, "data must be given", None, f"{self.where.lower()}(x, y)")
        if _is_batches(self.x):
            raise checks.fail_type(
                self.where, "x must be arrays or a dataset, and a list of tuples looks like batches",
                self.x, _FOR_BATCHES.get(self.where, "model.predict(x) for each batch"),
            )
        for name in ("batch_size", "steps"):
            if getattr(self, name) is not None:
                checks.integer(self.where, name, getattr(self, name), at_least=1)
        checks.boolean(self.where, "shuffle", self.shuffle)
        if self.class_weight is not None and self.sample_weight is not None:
            raise checks.fail_value(
                self.where, "class_weight and sample_weight must not be given both", self.class_weight,
                "sample_weight=... alone, multiplied by the classes' weights",
            )
        if not self.of_arrays:
            # Keras ignores `batch_size` beside a dataset of batches, so scripts pass both.
            for name in ("y", "sample_weight", *(("batch_size",) if hasattr(self.x, "pipeline_from") else ())):
                if getattr(self, name) is not None:
                    raise checks.fail_value(
                        self.where, f"{name} must not be given beside a dataset, which has its own",
                        getattr(self, name), f"{self.where.lower()}(dataset)",
                    )

    @property
    def of_arrays(self) -> bool:
        """Whether the data are arrays, not a dataset."""
        return not is_dataset(self.x)

    @property
    def weighted(self) -> bool:
        """Whether batches have a third column, the sample weights."""
        return self.sample_weight is not None or self.class_weight is not None

    def arrays(self) -> tuple[Tree, ...]:
        """Return the columns ``(x,)``, ``(x, y)`` or ``(x, y, sample_weight)``, structures of NumPy arrays."""
        structures = [self.x] + [column for column in (self.y, self.sample_weight) if column is not None]
        columns = [keras.tree.map_structure(_array, _parts(column)) for column in structures]
        sizes = {len(array) if array.ndim else -1 for array in keras.tree.flatten(columns)}
        if len(sizes) != 1 or -1 in sizes:
            shapes = checks.join_names(str(array.shape) for array in keras.tree.flatten(columns))
            raise ValueError(
                f"{self.where}: expected arrays with as many rows as each other; got shapes {shapes}. "
                "Write x and y of one length."
            )
        if self.class_weight is not None:
            columns.append(class_weights(self.where, self.y, self.class_weight))
        return as_batch(tuple(columns), backend.refuse_unstorable)

    def split(self, fraction: float) -> tuple[KerasData, KerasData]:
        """Split the rows into those for training and the last `fraction` of them, for validation."""
        if not self.of_arrays:
            raise checks.fail_value(
                self.where, "validation_split needs arrays", type(self.x).__name__, "validation_data=a dataset"
            )
        if not isinstance(fraction, (int, float)) or not 0 < fraction < 1:
            raise checks.fail_value(
                self.where, "validation_split must be above 0 and below 1", fraction, "validation_split=0.2"
            )
        rows = len(keras.tree.flatten(self.x)[0])
        index = int(rows * (1 - fraction))
        if not 0 < index < rows:
            raise checks.fail_value(
                self.where, f"validation_split of {rows} rows must leave rows on both sides", fraction,
                "validation_data=(x, y)",
            )

        def part(rows: slice) -> dict[str, Any]:
            return {
                name: None if value is None else keras.tree.map_structure(lambda array: array[rows], _parts(value))
                for name, value in (("x", self.x), ("y", self.y), ("sample_weight", self.sample_weight))
            }

        first = dataclasses.replace(self, **part(slice(index)))
        last = dataclasses.replace(self, **part(slice(index, None)), class_weight=None, shuffle=False, steps=None)
        return first, last

    def dataset(self) -> DatasetLike:
        data: Tree = self.x
        if self.of_arrays:
            data = ArrayBatches(self.arrays(), self.batch_size or BATCH_SIZE, shuffle=self.shuffle)
        elif self.shuffle and isinstance(data, keras.utils.PyDataset) and data.num_batches is not None:
            data = _ShuffledBatches(data)
        if self.class_weight is not None and not self.of_arrays:
            data = _WeightedBatches(self.where, data, self.class_weight, self.dicts)
        if self.steps is None and isinstance(data, Iterator):
            raise checks.fail_value(
                self.where, "a generator needs the number of its batches in an epoch", None, "steps_per_epoch=100"
            )
        if self.steps is None:
            return data
        steps = StepsOfEpoch(self.where, data, self.steps, continues=self.continues, dicts=self.dicts)
        return _Kept(steps) if self.keeps and isinstance(data, Iterator) else steps


def is_dataset(value: Any) -> bool:
    """Whether `value` is a dataset of batches, not arrays."""
    if isinstance(value, (np.ndarray, list, tuple, dict, str)) or backend.is_tensor(value):
        return False
    if hasattr(value, "__array__"):
        return False
    pipeline = hasattr(value, "pipeline_from") or hasattr(value, "pipeline")
    return pipeline or isinstance(value, (keras.utils.PyDataset, Iterable)) or data_backend.is_pipeline_source(value)


def _is_batches(x: Any) -> bool:
    """Whether data are a list of tuples of arrays, which `Model.train` and `Model.eval` take."""
    return isinstance(x, list) and bool(x) and all(
        isinstance(item, tuple) and any(hasattr(part, "shape") for part in item) for item in x
    )


def _parts(column: Tree) -> Tree:
    """Return a column with lists of numbers as arrays; a list of arrays is a structure."""
    if isinstance(column, (list, tuple)) and not any(np.ndim(part) or hasattr(part, "shape") for part in column):
        return np.asarray(column)
    if isinstance(column, list) and all(isinstance(part, (list, tuple)) for part in column):
        return np.asarray(column)
    return column


def class_weights(where: str, labels: TensorLike, weights: Mapping[int, float]) -> np.ndarray:
    """Return the weight of each row by its class; 1 for classes without a weight.

    `labels` are class numbers (N,) or (N, 1), or one-hot rows (N, classes).

    Example:
        >>> class_weights("Model.fit", np.array([0, 2]), {2: 5.0}).tolist()
        [1.0, 5.0]
    """
    checks.instance(where, "class_weight", weights, Mapping, "class_weight={0: 1.0, 1: 2.0}")
    if labels is None or not hasattr(_parts(labels), "shape"):
        raise checks.fail_value(
            where, "class_weight needs the labels of one output", type(labels).__name__, "sample_weight=..."
        )
    array = _array(_parts(labels))
    classes = array.argmax(-1) if array.ndim > 1 and array.shape[-1] > 1 else array.reshape(len(array), -1)[:, 0]
    row_weights = np.ones(classes.shape, np.float32)
    for number, weight in weights.items():
        row_weights[classes == number] = weight
    return row_weights


class ArrayBatches(keras.utils.PyDataset):
    """Batches of the rows of arrays; the last one may be shorter.

    `columns`: Structures of arrays of the same length. `batch_size`: Rows of a batch. `shuffle`: Whether to shuffle the
    rows before each pass, with NumPy's global generator (seeded by `keras.utils.set_random_seed`).
    """

    def __init__(self, columns: tuple[Tree, ...], batch_size: int, *, shuffle: bool = False) -> None:
        super().__init__()
        self._columns, self._batch_size, self._shuffle = columns, batch_size, shuffle
        self._rows = len(keras.tree.flatten(columns)[0])
        self._order: np.ndarray | None = None

    def __len__(self) -> int:
        return -(-self._rows // self._batch_size)

    def __getitem__(self, index: int) -> tuple[Tree, ...]:
        begin = index * self._batch_size
        rows: Any = slice(begin, begin + self._batch_size)
        if self._order is not None:
            rows = self._order[rows]
        return keras.tree.map_structure(lambda array: array[rows], self._columns)  # type: ignore[no-any-return]

    def on_epoch_begin(self) -> None:
        if self._shuffle:
            self._order = np.random.permutation(self._rows)


class _ShuffledBatches(keras.utils.PyDataset):
    """The batches of a `PyDataset`, shuffled before each pass."""

    def __init__(self, batches: keras.utils.PyDataset) -> None:
        super().__init__(batches.workers, batches.use_multiprocessing, batches.max_queue_size)
        self._batches = batches
        self._order = np.arange(batches.num_batches)

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, index: int) -> tuple[Tree, ...]:
        return self._batches[int(self._order[index])]

    def on_epoch_begin(self) -> None:
        self._batches.on_epoch_begin()
        self._order = np.random.permutation(self._batches.num_batches)

    def on_epoch_end(self) -> None:
        self._batches.on_epoch_end()


class StepsOfEpoch:
    """Epochs with a fixed number of batches of a dataset.

    `batches`: A dataset, which is repeated, or a generator. `steps`: Batches of an epoch. `continues`: Whether an epoch
    starts where the last one ended; always so with a generator. `dicts`: What a batch that is a dict holds.

    Example:
        >>> data = StepsOfEpoch("Model.fit", iter(range(4)), 2)
        >>> list(data), list(data)
        ([0, 1], [2, 3])
    """

    def __init__(
        self, where: str, batches: DatasetLike, steps: int, *, continues: bool = True, dicts: DictBatches = "columns"
    ) -> None:
        self._continues = continues or isinstance(batches, Iterator)
        self._where, self._batches, self._steps, self._dicts = where, batches, steps, dicts
        self._stream = self._endless()
        # A batch that was yielded, but not consumed: its reader did not ask for the one after it.
        self._unconsumed: list[Tree] = []

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[Tree]:
        if not self._continues:
            self._stream, self._unconsumed = self._endless(), []
        for _ in range(self._steps):
            if not self._unconsumed:
                self._unconsumed.append(next(self._stream))
            yield self._unconsumed[0]
            self._unconsumed.clear()

    def _endless(self) -> Iterator[Tree]:
        count = 0
        while True:
            count_before = count
            for batch in _passes(self._where, self._batches, self._dicts):
                count += 1
                yield batch
            if isinstance(self._batches, Iterator) or count == count_before:
                raise ValueError(
                    f"{self._where}: expected data for {self._steps} batches an epoch; they ended after {count}. "
                    "Write fewer steps or epochs, or data that do not end."
                )


class _Kept:
    """The batches of the first pass of a generator, in each pass."""

    def __init__(self, steps: StepsOfEpoch) -> None:
        self._count, self._unread = len(steps), iter(steps)
        self._batches: list[Tree] = []

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Tree]:
        yield from self._batches
        for batch in self._unread:  # A pass may end early, as where a first batch is looked at.
            self._batches.append(batch)
            yield batch


class _WeightedBatches:
    """The batches of a dataset, with a third column of sample weights by class."""

    def __init__(self, where: str, batches: DatasetLike, weights: Mapping[int, float], dicts: DictBatches) -> None:
        self._where, self._batches, self._weights, self._dicts = where, batches, weights, dicts

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Tree]:
        for batch in _passes(self._where, self._batches, self._dicts):
            columns = as_batch(batch, dicts=self._dicts)
            if len(columns) != 2:
                raise checks.fail_value(
                    self._where, "class_weight needs batches of 2 columns, data and label", len(columns),
                    "class_weight=None",
                )
            yield (*columns, class_weights(self._where, columns[1], self._weights))


def _passes(where: str, dataset: DatasetLike, dicts: DictBatches) -> Iterator[Tree]:
    """Yield the batches of one pass over a dataset, or those of a generator."""
    return dataset if isinstance(dataset, Iterator) else Feed(dataset, where, dicts=dicts).batches()


def _array(value: TensorLike) -> np.ndarray:
    """Return an array, tensor or data frame as a NumPy array; float64 becomes Keras's float dtype, as in Keras."""
    array = backend.to_numpy(value) if backend.is_tensor(value) else np.asarray(value)
    return array.astype(keras.backend.floatx()) if array.dtype == np.float64 else array
