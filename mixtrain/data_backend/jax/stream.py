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
    source: Source
    columns: tuple[str, ...] | None = None
    failures: tuple[Failure, ...] = dataclasses.field(default_factory=lambda: (Failure(),))
    uniform: bool = False

    @property
    def size(self) -> int | None:
        size = self.source.size
        return None if size is None or size == math.inf else int(size)

    @property
    def infinite(self) -> bool:
        return self.source.size == math.inf

    def batch(self, size: int, *, drop_remainder: bool = False) -> Pipeline:
        return self._with(row_steps.batched(self.source, size, drop_remainder=drop_remainder), uniform=False)

    def repeat(self, count: int | None = None) -> Pipeline:
        return self._with(row_steps.repeated(self.source, math.inf if count is None or count < 0 else count))

    def shuffle(self, buffer: int, seed: int | None = None) -> Pipeline:
        return self._with(row_steps.shuffled(self.source, buffer, seed))

    def take(self, count: int) -> Pipeline:
        return self._with(row_steps.taken(self.source, count))

    def skip(self, count: int) -> Pipeline:
        return self._with(row_steps.skipped(self.source, count))

    def prefetch(self, count: int = -1) -> Pipeline:
        """Return the same pipeline: elements are always prepared ahead of the reader."""
        del count
        return self

    def concatenate(self, other: Pipeline) -> Pipeline:
        return self._with(row_steps.joined(self.source, other.source), uniform=False)

    def map(self, function: Callable[..., Any], *, columns: tuple[str, ...] | None = None) -> Pipeline:
        compiled = jax.jit(lambda row: as_tuple(function(*row)))

        def call(row: Row) -> Row:
            with jax.default_device(jax.local_devices(backend="cpu")[0]):
                return tuple(map(np.asarray, compiled(row)))

        names = self.columns if columns is None else columns
        return self._with(row_steps.mapped(self.source, call), columns=names, uniform=False)

    def map_python(
        self, function: Callable[..., Any], example: Row, *, columns: tuple[str, ...] | None = None
    ) -> Pipeline:
        dtypes = [np.asarray(value).dtype for value in example]

        def call(row: Row) -> Row:
            results = as_tuple(function(*row))
            return tuple(np.asarray(value, dtype) for value, dtype in zip(results, dtypes, strict=True))

        names = self.columns if columns is None else columns
        return self._with(row_steps.mapped(self.source, call), columns=names, uniform=False)

    def first(self) -> tuple[Any, ...]:
        """Nothing is read where an example is known."""
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
        return self.first()

    def iterate(self) -> Pass:
        return Pass(self.source, names=self.columns)

    def graph_iterator(
        self, shapes: Sequence[Sequence[int | None]] | None = None, like: tuple[Any, ...] | None = None
    ) -> Pass:
        """An error comes as itself, and from `raise_pending`; the shapes are not needed."""
        del shapes
        (failure,) = self.failures
        failure.error = None
        return Pass(self.source, like=like, failure=failure, singles=1, names=self.columns)

    def raise_pending(self) -> None:
        for failure in self.failures:
            failure.raise_kept()

    def _with(self, source: Source, **changes: Any) -> Pipeline:
        return dataclasses.replace(self, source=source, **changes)


def is_pipeline_source(value: Any) -> bool:
    """JAX has none."""
    del value
    return False


def wrap_pipeline(value: Any, *, whole_dicts: bool = False) -> Pipeline:
    del whole_dicts
    raise TypeError(
        f"pipeline: expected a dataset of the backend, of which JAX has none; got {type(value).__name__}. "
        "Write mixtrain.dataset.GeneratorDataset(...), or a list of batches."
    )


def pipeline_from_arrays(arrays: Sequence[np.ndarray], columns: Sequence[str] | None = None) -> Pipeline:
    return Pipeline(rows.from_arrays(arrays), None if columns is None else tuple(columns))


def pipeline_from_rows(
    factory: Callable[[], Iterable[Row]], example: Row, *, size: float | None = None,
    columns: Sequence[str] | None = None,
) -> Pipeline:
    names = None if columns is None else tuple(columns)
    return Pipeline(rows.from_python(CheckedRows(factory, example, size, names)), names)
