"""Streams of batches, and functions of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mixtrain.data_backend.example_columns import ExampleColumn, Kind
from mixtrain.data_backend.row_part import RowPart
from mixtrain.data_backend.rows import Failure, Row
from mixtrain.typing import Tensor

# Raised by an iterator at its end, inside a compiled function and outside.
EndOfStream: tuple[type[Exception], ...]

class Pipeline:
    """A stream of elements, each a tuple with one tensor per column; every method returns a new pipeline.

    Attributes:
        source: Makes the elements.
        columns: Names of the columns, or None where they have none.
        failures: Store the exceptions that Python code in the stream raised; see `raise_pending`.
        uniform: Whether all elements are known to have as many rows as the first.
    """

    source: Any
    columns: tuple[str, ...] | None
    failures: tuple[Failure, ...]
    uniform: bool

    @property
    def size(self) -> int | None:
        """Number of elements, or None where it is unknown or without end."""

    @property
    def infinite(self) -> bool:
        """Whether the stream is known never to end."""

    def batch(self, size: int, *, drop_remainder: bool = False) -> Pipeline:
        """Stack every `size` elements on a new first axis."""

    def repeat(self, count: int | None = None) -> Pipeline:
        """Go through the stream `count` times; without end where it is None."""

    def shuffle(self, buffer: int, seed: int | None = None) -> Pipeline:
        """Shuffle within a buffer, each pass in another order."""

    def take(self, count: int) -> Pipeline:
        """Keep the first `count` elements."""

    def skip(self, count: int) -> Pipeline:
        """Drop the first `count` elements."""

    def prefetch(self, count: int = -1) -> Pipeline:
        """Prepare `count` elements ahead of the reader; -1 lets the backend choose."""

    def concatenate(self, other: Pipeline) -> Pipeline:
        """Continue with `other` where this one ends."""

    def map(self, function: Callable[..., Any], *, columns: tuple[str, ...] | None = None) -> Pipeline:
        """Apply a function of tensors to the columns, compiled and in parallel.

        `function`: Takes one tensor per column and returns a tensor or a tuple of tensors. `columns`: Names of the
        results, by default the same names.
        """

    def map_python(
        self, function: Callable[..., Any], example: Row, *, columns: tuple[str, ...] | None = None
    ) -> Pipeline:
        """Apply a function of NumPy arrays to the columns.

        `function`: Takes one array per column and returns an array or a tuple of arrays. `example`: A result of
        `function`: all results have its dtypes and ranks. `columns`: Names of the results, by default the same names.
        """

    def first(self) -> tuple[Any, ...]:
        """Return one element, for its shapes and dtypes.

        For rows made by Python code it is their example; none is read.
        """

    def example(self) -> tuple[Any, ...]:
        """Return an element with the shapes and dtypes of the first: of zeros where these are known, else the first.

        A pass that is begun to read one element fills the buffers of shuffles, and changes the order of the next pass.
        """

    def iterate(self) -> Iterator[tuple[Any, ...]]:
        """Yield the elements of one pass as tensors, reading ahead.

        Raises: Exception raised by Python code in the stream, as itself.
        """

    def graph_iterator(
        self, shapes: Sequence[Sequence[int | None]] | None = None, like: tuple[Any, ...] | None = None
    ) -> Any:
        """Return an iterator for `CompiledSteps`; on TensorFlow any compiled function reads it by ``next(iterator)``.

        `shapes`: The shape of each column in the first batch, if the backend needs it; every dimension is then fixed,
        the first only where the pipeline is `uniform`. Columns of several parts have one shape for each part. `like`:
        Where columns have several parts, an element whose structure (tuples and dicts) those read have.

        Returns: The iterator. At its end it raises `EndOfStream`; after another error, call `raise_pending`.
        """

    def raise_pending(self) -> None:
        """Raise the exception that stopped Python code in the stream, if there is one."""

def is_pipeline_source(value: Any) -> bool:
    """Whether `value` is a dataset of the backend, which `wrap_pipeline` accepts."""

def wrap_pipeline(value: Any, *, whole_dicts: bool = False) -> Pipeline:
    """Return a dataset of the backend as a pipeline; a single tensor becomes the one column.

    `value`: The dataset, a `tf.data.Dataset`. `whole_dicts`: Whether elements that are dicts become the one column;
    otherwise their keys become the columns.

    Raises: TypeError if the backend has no datasets.
    """

def pipeline_from_arrays(arrays: Sequence[np.ndarray], columns: Sequence[str] | None = None) -> Pipeline:
    """Return the rows of equally long arrays."""

def pipeline_from_rows(
    factory: Callable[[], Iterable[Row]], example: Row, *, size: float | None = None,
    columns: Sequence[str] | None = None,
) -> Pipeline:
    """Return the rows made by Python code.

    `factory`: Called at the start of each pass; returns the rows, tuples of arrays. `example`: One row: all rows have
    its dtypes and ranks; sizes may differ from row to row. `size`: Number of rows of a pass, where it is known;
    `math.inf` where it does not end. `columns`: Names of the columns.

    Raises: On reading, TypeError if a row has another dtype than `example`. ValueError if it has another number of
    columns or another rank, or `size` was wrong.
    """

class RowFunction:
    """A function of a row's seed and columns, in parts.

    A block of rows is one call of a compiled function, in which a part of single rows is a loop.

    `parts`: The parts, in order. `parallel`: How many rows of a block are computed in parallel, where the backend can.
    `files`: The indices of the columns that `call_files` takes as encoded images.

    Attributes:
        opens: Whether `call_files` is supported.
    """

    opens: bool

    def __init__(self, parts: Sequence[RowPart], *, parallel: int, files: Sequence[int] = ()) -> None: ...

    def __call__(self, keys: np.ndarray, block: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return the results for the rows of a block, stacked.

        `keys`: One int64 per row, the seed of its random numbers. `block`: One array per column, rows along the first
        axis.

        Raises: ValueError if a row does not fulfill a requirement of the function; see `require`.
        """

    def call_files(self, keys: np.ndarray, columns: Sequence[Sequence[np.ndarray]]) -> tuple[np.ndarray, ...] | None:
        """Return the results for rows with columns of encoded images, which are decoded in the same call.

        `keys`: One int64 per row, the seed of its random numbers. `columns`: The values of the rows of each column.

        Returns: The results, stacked. None where the images must be decoded first: one is broken or has another size
        than those of earlier blocks, there were too few blocks with this number of rows, which needs its own graph, or
        the backend decodes no images.
        """

def call_row(function: Callable[..., Any], seed: Sequence[int], *columns: Any) -> Any:
    """Call a function of a seed and tensors for one row eagerly; return its results as NumPy arrays."""

def require(condition: Tensor, message: str, *values: Any) -> None:
    """Raise a ValueError where the condition, a bool or a tensor, is false.

    `message`: The message, with ``{}`` for each value. `values`: Python numbers or tensors.
    """

def first_example(path: str, compression: str) -> dict[str, Kind]:
    """Return the names of the features of the first example of a file, and their kinds.

    Raises: UnreadableRecord if there is no such record. UnsupportedBackendError if the backend has no reader for them.
    """

class Examples:
    """Reader of the rows in record files.

    Attributes:
        columns: The columns to read.
        compression: "", "GZIP" or "ZLIB".
        workers: How many records are parsed in parallel.
    """

    columns: Sequence[ExampleColumn]
    compression: str
    workers: int

    def read(self, paths: Sequence[str], *, start: int = 0, count: int) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield the rows of some files, one after the other.

        `paths`: The files. `start`: The first row to read. `count`: The number of rows to read; after the last file the
        first one follows again.

        Raises: UnreadableRecord if the next record is damaged, or lacks an expected feature. UnsupportedBackendError if
        the backend has no reader for them.
        """
