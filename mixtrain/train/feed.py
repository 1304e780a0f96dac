"""`Feed`: the batches of any dataset, read on the host or through the backend's iterator."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import keras
import numpy as np

from mixtrain import backend, checks, data_backend
from mixtrain.boundary import tensor
from mixtrain.data_backend import Pipeline
from mixtrain.distribution.joint_batches import joint_batches
from mixtrain.train.held_batches import HeldBatches, borrow
from mixtrain.train.read_ahead import read_ahead
from mixtrain.typing import Batch, DatasetLike, Network, Tensor, TensorLike, Tree

# What a batch that is a dict holds: the columns in their order, as in MindSpore, or all inputs by name, as in Keras.
DictBatches = Literal["columns", "inputs"]


class Feed:
    """A dataset that can be read any number of times.

    `dataset`: A mixtrain dataset, `tf.data.Dataset`, `keras.utils.PyDataset`, or anything that can be iterated again
    and again and yields batches ``(data, label)``. `where`: The caller, for errors. `first_pass`: Index of the first
    pass over a mixtrain dataset, whose order under a seed is that of the same pass in an uninterrupted run. Other
    datasets are read from their beginning. `dicts`: What a batch that is a dict holds; see `dicts_of`. The batches of a
    mixtrain dataset are columns. `joint`: The devices of several processes that train on joint batches, or None.

    Raises: TypeError if `dataset` cannot be iterated.

    Attributes:
        dataset, joint: As passed.
    """

    def __init__(
        self, dataset: DatasetLike, where: str, first_pass: int = 0, *, dicts: DictBatches = "columns",
        joint: Any = None,
    ) -> None:
        self.dataset = dataset
        self.joint = joint
        self._dicts = dicts
        self._where = where
        self._first: Batch | None = None
        self._example: Batch | None = None
        self._graph: Pipeline | None = None
        if callable(getattr(dataset, "pipeline_from", None)):
            self._pipeline: Pipeline | None = dataset.pipeline_from(first_pass)
        elif isinstance(getattr(dataset, "pipeline", None), Pipeline):
            self._pipeline = dataset.pipeline
        elif data_backend.is_pipeline_source(dataset):
            self._pipeline = data_backend.wrap_pipeline(dataset, whole_dicts=dicts == "inputs")
        elif isinstance(dataset, Iterator) and not callable(getattr(dataset, "reset", None)):
            raise checks.fail_type(
                where, "the dataset must be readable again in each epoch", dataset,
                "mixtrain.dataset.GeneratorDataset(function, ...) or list(batches)",
            )
        elif isinstance(dataset, (keras.utils.PyDataset, Iterable)):
            self._pipeline = None
        else:
            raise checks.fail_type(
                where,
                "the dataset must be a mixtrain dataset, tf.data.Dataset, keras.utils.PyDataset or an iterable of "
                "batches",
                dataset,
                "a list of (data, label) batches",
            )

    @property
    def size(self) -> int | None:
        """Number of batches in a pass, or None where it is unknown."""
        if isinstance(self.dataset, keras.utils.PyDataset):
            return self.dataset.num_batches
        known = None if self._pipeline is None else self._pipeline.size
        return self._counted if known is None else known

    @functools.cached_property
    def _counted(self) -> int | None:
        """What the dataset says itself; one of mixtrain reads a pass where it must, as in MindSpore."""
        count = getattr(self.dataset, "get_dataset_size", None)
        with contextlib.suppress(Exception):  # What fails here fails in the pass too, where it is explained.
            return len(self.dataset) if count is None else count()  # type: ignore[arg-type, no-any-return]
        return None

    def first(self) -> Batch:
        """Return the first batch of a pass. Raises: ValueError if the dataset is empty."""
        if self._first is None:
            self._first = self._checked(self._read_first)
        return self._first

    def example(self) -> Batch:
        """Return a batch with the structure, shapes and dtypes of the first, whose values may be others.

        Raises: ValueError if the dataset is empty, if that is known before it is read.
        """
        if self._example is None:
            self._example = self._checked(self._read_example)
        return self._example

    def _checked(self, read: Callable[[], Batch | None]) -> Batch:
        try:
            batch = read()
        except StopIteration:
            batch = None
        if batch is None or self.size == 0:
            raise ValueError(
                f"{self._where}: the dataset must have at least one batch; got none. "
                "Look at its size, and at drop_remainder with a batch larger than the data."
            )
        return batch

    def _read_first(self) -> Batch | None:
        if self._pipeline is not None:
            return self._pipeline.first()  # Starts no pass.
        if isinstance(self.dataset, keras.utils.PyDataset):  # Without its epoch hooks, as no pass starts.
            return None if self.size == 0 else as_batch(self.dataset[0], dicts=self._dicts)
        return next(self._own_batches(), None)

    def _read_example(self) -> Batch | None:
        return self.first() if self._pipeline is None else self._pipeline.example()

    def batches(self, *, held: bool = False, ahead: bool = False) -> Iterator[Batch]:
        """Yield the batches of one pass as tuples of columns.

        `held`: Whether batches of Python code are `HeldBatches`, for `grouped`. `ahead`: Whether one of these may be
        read before the step of the one before it has begun.
        """
        if self.joint is not None:
            return joint_batches(self._own_batches(), self._where, self.joint)
        return self._own_batches(held=held, ahead=ahead)

    def _own_batches(self, *, held: bool = False, ahead: bool = False) -> Iterator[Batch]:
        """Yield the batches that this process reads."""
        if self._pipeline is not None:
            return self._pipeline.iterate()
        if held:
            return HeldBatches((as_batch(batch, borrow, self._dicts) for batch in self._python_batches()), ahead=ahead)
        return (as_batch(batch, dicts=self._dicts) for batch in self._python_batches())

    def _python_batches(self) -> Iterator[Tree]:
        if not isinstance(self.dataset, keras.utils.PyDataset):
            if isinstance(self.dataset, Iterator):
                self.dataset.reset()  # type: ignore[attr-defined]  # An iterator without it was refused.
            yield from self.dataset
            return
        self.dataset.on_epoch_begin()
        size = self.dataset.num_batches
        yield from read_ahead(self.dataset, itertools.count() if size is None else range(size))
        self.dataset.on_epoch_end()

    def graph_iterator(self, passes: int = 1) -> Any:
        """Return an iterator over repeated passes that a compiled loop reads.

        `passes`: Number of passes.

        Returns: The backend's iterator; after an error in it call `raise_pending`.

        Raises: ValueError if a column has parts that are not tensors.
        """
        example = self.example()
        parts = keras.tree.flatten(example)
        if not all(map(backend.is_tensor, parts)):
            raise ValueError(
                f"{self._where}: with dataset_sink_mode=True each column of a batch must be a tensor, or a tuple or "
                f"dict of tensors; got {checks.join_names(type(part).__name__ for part in parts)}. "
                "Write dataset_sink_mode=False."
            )
        if self._pipeline is None:
            row = tuple(map(backend.to_numpy, parts))
            arrays = functools.partial(self._arrays, [value.dtype for value in row])
            pipeline = data_backend.pipeline_from_rows(arrays, row, size=self.size)
            self._graph = dataclasses.replace(pipeline, uniform=self._uniform())
        else:
            self._graph = self._pipeline
        # A backend keeps streams to begin a pass sooner, and would not find this one by its repetition.
        stream = self._graph if passes == 1 else self._graph.repeat(passes)
        return stream.graph_iterator([part.shape for part in parts], example)

    def _uniform(self) -> bool:
        """Whether all batches are known to have the shapes of the first, which a list of batches tells."""
        if not isinstance(self.dataset, (list, tuple)):
            return False
        return len({tuple(map(np.shape, _parts_of(batch, self._dicts))) for batch in self.dataset}) == 1

    def _arrays(self, dtypes: Sequence[np.dtype]) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield the batches of one pass as flat tuples of NumPy arrays, the parts of all columns.

        `dtypes`: The dtypes of the parts. An array that has its dtype already is not copied through the device.
        """
        for batch in self._python_batches():
            # A batch with more parts than the first one is refused where its arrays are read.
            padded = itertools.chain(dtypes, itertools.repeat(None))
            yield tuple([
                part if isinstance(part, np.ndarray) and part.dtype == dtype
                else backend.to_numpy(backend.to_tensor(part))
                for part, dtype in zip(_parts_of(batch, self._dicts), padded, strict=False)
            ])

    def raise_pending(self) -> None:
        """Raise the exception of the user's code that ended the backend's iterator, if there is one."""
        if self._graph is not None:
            self._graph.raise_pending()


def dicts_of(network: Network) -> DictBatches:
    """Return what a batch that is a dict holds for a network: for a Keras network its inputs by name."""
    return "inputs" if isinstance(network, keras.Layer) else "columns"


def _to_tensor(part: TensorLike) -> Tensor:
    return backend.to_tensor(backend.refuse_unstorable(part))


def as_batch(
    batch: Tree, convert: Callable[[TensorLike], Tensor] = _to_tensor, dicts: DictBatches = "columns"
) -> Batch:
    """Return a batch as a tuple of columns of tensors.

    A column of several parts is a dict or a tuple of tensors: a list becomes a tuple, as in `tf.data`.

    `batch`: An element of a dataset. `convert`: Converts a single array or value to a tensor. `dicts`: What a dict
    holds: "columns" or, as one column, "inputs".

    Raises: Unstorable if the backend has no tensor for a value.
    """
    if not isinstance(batch, (tuple, list)):
        batch = tuple(batch.values()) if dicts == "columns" and isinstance(batch, Mapping) else (batch,)
    try:
        return tuple(_as_column(column, convert) for column in batch)
    except backend.Unstorable as error:
        raise _naming_column(error, batch) from None


def _naming_column(error: backend.Unstorable, batch: Tree) -> backend.Unstorable:
    """Return the error with the column of a batch that it is about, by index and, in a dict, name."""
    for (index, *path), part in keras.tree.flatten_with_path(batch):
        try:
            backend.refuse_unstorable(part)
        except backend.Unstorable:
            return error.of(f"column {index}" + "".join(f"[{name!r}]" for name in path if isinstance(name, str)))
    return error


def _parts_of(batch: Tree, dicts: DictBatches) -> list[Tree]:
    """Return the parts of all columns of a batch as a flat list, checked, but not converted to tensors."""
    columns = as_batch(batch, backend.refuse_unstorable, dicts)
    if all(isinstance(part, np.ndarray) for part in columns):
        return [*columns]  # Most batches; `keras.tree.flatten` is too slow for them.
    return keras.tree.flatten(columns)  # type: ignore[no-any-return]


def _as_column(column: Tree, convert: Callable[[TensorLike], Tensor]) -> Tree:
    """Return a column as a tensor, or as a structure of tensors for a network of several inputs."""
    if isinstance(column, backend.BACKEND_TENSORS):
        return column  # First, as it is the most common case in the steps of a run.
    if isinstance(column, np.ndarray):
        return convert(column)
    if isinstance(column, Mapping):
        return {name: _as_column(part, convert) for name, part in column.items()}
    if isinstance(column, (list, tuple)) and isinstance(keras.tree.flatten(column)[0], numbers.Number):
        result = tensor("Model", column)  # Refuses what are not numbers of one shape.
        backend.refuse_unstorable(np.asarray(column))
        return result
    return keras.tree.lists_to_tuples(keras.tree.map_structure(convert, column))
