"""The data stream: tuples of tensors, one per column, read ahead of the step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import keras
import numpy as np
import tensorflow as tf

from mixtrain.backend.aligned import aligned_copy
from mixtrain.backend.tensorflow.control import numpy_function
from mixtrain.data_backend.ahead import read_ahead
from mixtrain.data_backend.rows import Failure, Row, as_tuple
from mixtrain.data_backend.tensorflow.iterators import cached, start, start_prefetching, untuned
from mixtrain.data_backend.tensorflow.passes import Pass, element_bytes
from mixtrain.data_backend.tensorflow.rows import PythonRows, row_specs

# Raised by an iterator at its end: the first inside a compiled function, the second outside.
EndOfStream: tuple[type[Exception], ...] = (tf.errors.OutOfRangeError, StopIteration)

# The first element is cached with its stream up to this size, where all elements have its shapes.
_MAX_CACHED_BYTES: Final = 2**22


@dataclasses.dataclass(frozen=True, eq=False)
class Pipeline:
    source: tf.data.Dataset | PythonRows
    columns: tuple[str, ...] | None = None
    failures: tuple[Failure, ...] = ()
    uniform: bool = False

    @property
    def dataset(self) -> tf.data.Dataset:
        """The stream as a `tf.data.Dataset`."""
        return self.source.dataset if isinstance(self.source, PythonRows) else self.source

    @property
    def size(self) -> int | None:
        if isinstance(self.source, PythonRows):
            size = self.source.size
            return None if size is None or size == math.inf else int(size)
        count = int(self.source.cardinality())
        return count if count >= 0 else None

    @property
    def infinite(self) -> bool:
        if isinstance(self.source, PythonRows):
            return self.source.size == math.inf
        return bool(self.source.cardinality() == tf.data.INFINITE_CARDINALITY)

    def batch(self, size: int, *, drop_remainder: bool = False) -> Pipeline:
        return dataclasses.replace(self, source=self.dataset.batch(size, drop_remainder=drop_remainder), uniform=False)

    def repeat(self, count: int | None = None) -> Pipeline:
        return self._with(self.dataset.repeat(count))

    def shuffle(self, buffer: int, seed: int | None = None) -> Pipeline:
        return self._with(self.dataset.shuffle(buffer, seed=seed))

    def take(self, count: int) -> Pipeline:
        return self._with(self.dataset.take(count))

    def skip(self, count: int) -> Pipeline:
        return self._with(self.dataset.skip(count))

    def prefetch(self, count: int = -1) -> Pipeline:
        return self._with(self.dataset.prefetch(count))

    def concatenate(self, other: Pipeline) -> Pipeline:
        joined = self.dataset.concatenate(other.dataset)
        return dataclasses.replace(self, source=joined, failures=self.failures + other.failures, uniform=False)

    def map(self, function: Callable[..., Any], *, columns: tuple[str, ...] | None = None) -> Pipeline:
        mapped = self.dataset.map(
            lambda *row: as_tuple(function(*row)), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )
        names = self.columns if columns is None else columns
        return dataclasses.replace(self, source=mapped, columns=names, uniform=False)

    def map_python(
        self, function: Callable[..., Any], example: Row, *, columns: tuple[str, ...] | None = None
    ) -> Pipeline:
        failure = Failure()
        specs = row_specs(example)

        def call(*row: np.ndarray) -> list[np.ndarray]:
            with failure.keeping():
                results = as_tuple(function(*row))
                dtypes = (spec.dtype.as_numpy_dtype for spec in specs)
                # Copied, as the function may return an array of its own: see `PythonRows.blocks`.
                return [aligned_copy(np.asarray(value, dtype)) for value, dtype in zip(results, dtypes, strict=True)]

        def graph(*row: Any) -> tuple[Any, ...]:
            results = numpy_function(call, row, [spec.dtype for spec in specs])
            return tuple(tf.ensure_shape(value, spec.shape) for value, spec in zip(results, specs, strict=True))

        names = self.columns if columns is None else columns
        return Pipeline(self.dataset.map(graph), names, (*self.failures, failure))

    def first(self) -> tuple[Any, ...]:
        if isinstance(self.source, PythonRows):
            return tuple(map(tf.convert_to_tensor, self.source.example))
        size = element_bytes(self.source.element_spec)
        if not self.size or size is None or size > _MAX_CACHED_BYTES:
            return self._first_of(self.source)
        return cached(self.source, "_mixtrain_first", self._first_of)  # type: ignore[no-any-return]

    def example(self) -> tuple[Any, ...]:
        if isinstance(self.source, PythonRows) or not _knows_shapes(self.source.element_spec):
            return self.first()
        return tf.nest.map_structure(_zeros, self.source.element_spec)  # type: ignore[no-any-return]

    def _first_of(self, dataset: tf.data.Dataset) -> tuple[Any, ...]:
        first = cached(dataset, "_mixtrain_one", lambda dataset: untuned(dataset.take(1)))
        return next(Pass(start(first), 1, self.raise_pending))

    def iterate(self) -> Iterator[tuple[Any, ...]]:
        if isinstance(self.source, PythonRows):
            rows = self.source.rows
            return read_ahead(lambda: (tuple(map(tf.convert_to_tensor, row)) for row in rows()))
        return Pass(start_prefetching(self.source), self.size, self.raise_pending)

    def graph_iterator(
        self, shapes: Sequence[Sequence[int | None]] | None = None, like: tuple[Any, ...] | None = None
    ) -> Any:
        dataset = self.dataset
        if shapes is not None:
            fixed = [tuple(shape) if self.uniform or not len(shape) else (None, *shape[1:]) for shape in shapes]

            def arranged(*row: Any) -> tuple[Any, ...]:
                parts = map(tf.ensure_shape, keras.tree.flatten(row), fixed)
                return tuple(parts) if like is None else keras.tree.pack_sequence_as(like, list(parts))

            if not _is_arranged(dataset.element_spec, fixed, like):
                dataset = dataset.map(arranged)
        return start_prefetching(dataset)

    def raise_pending(self) -> None:
        for failure in self.failures:
            failure.raise_kept()

    def _with(self, dataset: tf.data.Dataset) -> Pipeline:
        return dataclasses.replace(self, source=dataset)


def _knows_shapes(spec: Any) -> bool:
    """Whether a spec has the shape of every tensor, up to the number of rows."""
    parts = tf.nest.flatten(spec)
    return all(isinstance(part, tf.TensorSpec) and part.shape[1:].is_fully_defined() for part in parts)


def _zeros(spec: tf.TensorSpec) -> tf.Tensor:
    """Return a tensor of zeros, or of empty strings, with one row if their number is unknown."""
    return tf.zeros([1 if size is None else size for size in spec.shape], spec.dtype)


def _is_arranged(spec: Any, shapes: Sequence[Any], like: tuple[Any, ...] | None) -> bool:
    """Whether elements of a spec have these shapes and this structure already."""
    parts = keras.tree.flatten(spec)
    if not all(isinstance(part, tf.TensorSpec) and part.shape.rank is not None for part in parts):
        return False
    if not all(_is_compatible(part.shape, shape) for part, shape in zip(parts, shapes, strict=True)):
        return False
    try:
        keras.tree.assert_same_structure(spec, spec if like is None else like)
    except (TypeError, ValueError):
        return False
    return isinstance(spec, tuple)


def _is_compatible(shape: Sequence[int | None], target: Sequence[int | None]) -> bool:
    """Whether a shape equals another one where that is known."""
    return len(shape) == len(target) and all(known in (None, size) for size, known in zip(shape, target, strict=True))


def is_pipeline_source(value: Any) -> bool:
    return isinstance(value, tf.data.Dataset)


def wrap_pipeline(value: Any, *, whole_dicts: bool = False) -> Pipeline:
    spec = value.element_spec
    if isinstance(spec, dict) and not whole_dicts:
        names = tuple(spec)
        return Pipeline(value.map(lambda row: tuple(row[name] for name in names)), names)
    if isinstance(spec, tuple):
        return Pipeline(value, getattr(spec, "_fields", None))
    return Pipeline(value.map(lambda row: (row,)))


def pipeline_from_arrays(arrays: Sequence[np.ndarray], columns: Sequence[str] | None = None) -> Pipeline:
    return Pipeline(tf.data.Dataset.from_tensor_slices(tuple(arrays)), None if columns is None else tuple(columns))


def pipeline_from_rows(
    factory: Callable[[], Iterable[Row]], example: Row, *, size: float | None = None,
    columns: Sequence[str] | None = None,
) -> Pipeline:
    rows = PythonRows(factory, example, size, None if columns is None else tuple(columns))
    return Pipeline(rows, rows.columns, (rows.failure,))
