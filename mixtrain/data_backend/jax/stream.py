"""The data stream: tuples of arrays, one per column, made and copied to the device ahead of the step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from mixtrain.backend.jax.elements import on_device
from mixtrain.data_backend.jax import row_steps, rows
from mixtrain.data_backend.jax.passes import Pass, refuse_unstorable_columns
from mixtrain.data_backend.jax.rows import Source
from mixtrain.data_backend.rows import CheckedRows, Failure, Row, as_tuple

# Raised by an iterator at its end.
EndOfStream: tuple[type[Exception], ...] = (StopIteration,)


@dataclasses.dataclass(frozen=True, eq=False)
class Pipeline:
    """A stream of elements, each a tuple with one array per column; every method returns a new pipeline.

    Attributes:
        source: Makes the elements.
        columns: Names of the columns, or None where they have none.
        failures: Store the exception of Python code that iterators of `graph_iterator` run; see `raise_pending`.
        uniform: Whether all elements are known to have as many rows as the first.
    """

    source: Source
    columns: tuple[str, ...] | None = None
    failures: tuple[Failure, ...] = dataclasses.field(default_factory=lambda: (Failure(),))
    uniform: bool = False

    @property
    def size(self) -> int | None:
        """Number of elements, or None where it is unknown or without end."""
        size = self.source.size
        return None if size is None or size == math.inf else int(size)

    @property
    def infinite(self) -> bool:
        """Whether the stream is known never to end."""
        return self.source.size == math.inf

    def batch(self, size: int, *, drop_remainder: bool = False) -> Pipeline:
        """Stack every `size` elements on a new first axis."""
        return self._with(row_steps.batched(self.source, size, drop_remainder=drop_remainder), uniform=False)

    def repeat(self, count: int | None = None) -> Pipeline:
        """Go through the stream `count` times; without end where it is None."""
        return self._with(row_steps.repeated(self.source, math.inf if count is None or count < 0 else count))

    def shuffle(self, buffer: int, seed: int | None = None) -> Pipeline:
        """Shuffle within a buffer, each pass in another order."""
        return self._with(row_steps.shuffled(self.source, buffer, seed))

    def take(self, count: int) -> Pipeline:
        """Keep the first `count` elements."""
        return self._with(row_steps.taken(self.source, count))

    def skip(self, count: int) -> Pipeline:
        """Drop the first `count` elements."""
        return self._with(row_steps.skipped(self.source, count))

    def prefetch(self, count: int = -1) -> Pipeline:
        """Return the same pipeline: elements are always prepared ahead of the reader."""
        del count
        return self

    def concatenate(self, other: Pipeline) -> Pipeline:
        """Continue with `other` where this one ends."""
        return self._with(row_steps.joined(self.source, other.source), uniform=False)

    def map(self, function: Callable[..., Any], *, columns: tuple[str, ...] | None = None) -> Pipeline:
        """Apply a function of tensors to the columns, compiled.

        Args:
            function: Takes one tensor per column and returns a tensor or a tuple of tensors.
            columns: Names of the results, by default the same names.
        """
        compiled = jax.jit(lambda row: as_tuple(function(*row)))

        def call(row: Row) -> Row:
            with jax.default_device(jax.local_devices(backend="cpu")[0]):
                return tuple(map(np.asarray, compiled(row)))

        names = self.columns if columns is None else columns
        return self._with(row_steps.mapped(self.source, call), columns=names, uniform=False)

    def map_python(
        self, function: Callable[..., Any], example: Row, *, columns: tuple[str, ...] | None = None
    ) -> Pipeline:
        """Apply a function of NumPy arrays to the columns.

        Args:
            function: Takes one array per column and returns an array or a tuple of arrays.
            example: A result of `function`: all results have its dtypes and ranks.
            columns: Names of the results, by default the same names.
        """
        dtypes = [np.asarray(value).dtype for value in example]

        def call(row: Row) -> Row:
            results = as_tuple(function(*row))
            return tuple(np.asarray(value, dtype) for value, dtype in zip(results, dtypes, strict=True))

        names = self.columns if columns is None else columns
        return self._with(row_steps.mapped(self.source, call), columns=names, uniform=False)

    def first(self) -> tuple[Any, ...]:
        """Return one element, for its shapes and dtypes; nothing is read where an example is known."""
        if self.source.example is not None:
            example = tuple(map(np.asarray, self.source.example))
            refuse_unstorable_columns(example, self.columns)
            return on_device(example)
        elements = self.iterate()
        try:
            return next(elements)
        finally:
            elements.close()

    def example(self) -> tuple[Any, ...]:
        """Return an element with the shapes and dtypes of the first."""
        return self.first()

    def iterate(self) -> Pass:
        """Return the elements of one pass, copied to the device ahead of the reader.

        Raises:
            Exception: Raised by Python code in the stream, as itself.
        """
        return Pass(self.source, names=self.columns)

    def graph_iterator(
        self, shapes: Sequence[Sequence[int | None]] | None = None, like: tuple[Any, ...] | None = None
    ) -> Pass:
        """Return an iterator whose ``peek_chunk(count)`` gives a compiled function its elements, stacked.

        Args:
            shapes: The shape of each column in the first batch. (TensorFlow needs it, this backend does not.)
            like: Where columns have several parts, an element whose structure (tuples and dicts) those read have.

        Returns:
            The iterator. At its end it raises `EndOfStream`; another error comes as itself, and from `raise_pending`.
        """
        del shapes
        (failure,) = self.failures
        failure.error = None
        return Pass(self.source, like=like, failure=failure, singles=1, names=self.columns)

    def raise_pending(self) -> None:
        """Raise the exception that stopped Python code in the stream, if there is one."""
        for failure in self.failures:
            failure.raise_kept()

    def _with(self, source: Source, **changes: Any) -> Pipeline:
        return dataclasses.replace(self, source=source, **changes)


def is_pipeline_source(value: Any) -> bool:
    """Whether `value` is a dataset of the backend, which `wrap_pipeline` accepts: JAX has none."""
    del value
    return False


def wrap_pipeline(value: Any, *, whole_dicts: bool = False) -> Pipeline:
    """Refuse a value, since JAX has no datasets.

    Raises:
        TypeError: Always.
    """
    del whole_dicts
    raise TypeError(
        f"pipeline: expected a dataset of the backend, of which JAX has none; got {type(value).__name__}. "
        "Write mixtrain.dataset.GeneratorDataset(...), or a list of batches."
    )


def pipeline_from_arrays(arrays: Sequence[np.ndarray], columns: Sequence[str] | None = None) -> Pipeline:
    """Return the rows of equally long arrays."""
    return Pipeline(rows.from_arrays(arrays), None if columns is None else tuple(columns))


def pipeline_from_rows(
    factory: Callable[[], Iterable[Row]],
    example: Row,
    *,
    size: float | None = None,
    columns: Sequence[str] | None = None,
) -> Pipeline:
    """Return the rows made by Python code.

    Args:
        factory: Called at the start of each pass; returns the rows, tuples of arrays.
        example: One row: all rows have its dtypes and ranks; sizes may differ from row to row.
        size: Number of rows of a pass, where it is known; `math.inf` where it does not end.
        columns: Names of the columns.

    Raises:
        TypeError: On reading: a row has another dtype than `example`.
        ValueError: On reading: a row has another number of columns or another rank, or `size` was wrong.
    """
    names = None if columns is None else tuple(columns)
    return Pipeline(rows.from_python(CheckedRows(factory, example, size, names)), names)
