"""A function of one row, compiled once and run over blocks of rows: the transforms of a data pipeline."""

from __future__ import annotations

import collections
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import tensorflow as tf

from mixtrain.data_backend.row_part import RowPart
from mixtrain.data_backend.tensorflow.encoded import decoded, is_jpeg
from mixtrain.data_backend.tensorflow.requirements import read_error

Columns = tuple[np.ndarray, ...]

_MIN_BLOCKS: Final = 16  # Blocks with files and one number of rows, after which tracing a graph for it pays off.
_IMAGES: Final = (np.dtype(np.uint8), 4)  # dtype and rank of decoded files.


class RowFunction:
    # Several rows are in flight in a loop. The graph is traced for the sizes of the first rows, and retraced for any
    # size where a row has other sizes. Image files are decoded in the same call where possible: between two calls each
    # image would become a NumPy array and all of them a block again, which takes half as long as decoding them.
    opens: Final = True

    def __init__(self, parts: Sequence[RowPart], *, parallel: int, files: Sequence[int] = ()) -> None:
        self._parts = tuple(parts)
        self._parallel = parallel
        self._files = tuple(files)
        self._compiled: dict[Any, Any] = {}
        self._blocks: collections.Counter[Any] = collections.Counter()
        self._known_sizes: dict[Any, tuple[tuple[int, ...], ...] | None] = {}
        self._lock = threading.Lock()

    def __call__(self, keys: np.ndarray, block: Sequence[np.ndarray]) -> Columns:
        compiled = self._compile(block)
        try:
            results = compiled(tf.constant(keys, tf.int64), *map(tf.constant, block))
        except tf.errors.InvalidArgumentError as error:
            raise read_error(error) from None
        return tuple(result.numpy() for result in results)

    def call_files(self, keys: np.ndarray, columns: Sequence[Sequence[np.ndarray]]) -> Columns | None:
        firsts = [column[0] for column in columns]
        spec = tuple(
            _IMAGES if index in self._files else (value.dtype, value.ndim + 1) for index, value in enumerate(firsts)
        )
        sizes = self._known_sizes.get(spec)
        if sizes is None or not all(map(self._fit, range(len(columns)), sizes, columns)):
            return None
        block = [
            [value.tobytes() for value in column] if index in self._files else np.stack(column)
            for index, column in enumerate(columns)
        ]
        jpegs = {is_jpeg(contents) for index in self._files for contents in block[index]}
        compiled = self._compile_files(spec, sizes, len(keys), *jpegs) if len(jpegs) == 1 else None
        if compiled is None:
            return None
        try:
            results = compiled(tf.constant(keys, tf.int64), *map(tf.constant, block))
        except tf.errors.OpError:  # The caller finds the row and its error one by one.
            return None
        return tuple(result.numpy() for result in results)

    def _fit(self, index: int, size: tuple[int, ...], column: Sequence[np.ndarray]) -> bool:
        """Whether the values of a column have the size of earlier ones; files may have any."""
        if index in self._files:
            return all(value.ndim == 1 and value.dtype == np.uint8 for value in column)
        return {(value.dtype, value.shape) for value in column} == {(column[0].dtype, size)}

    def _compile(self, block: Sequence[np.ndarray]) -> Any:
        spec = tuple((array.dtype, array.ndim) for array in block)
        sizes = tuple(array.shape[1:] for array in block)
        with self._lock:
            files = any(array.ndim == 2 and array.dtype == np.uint8 for array in block)  # Their lengths differ.
            if self._known_sizes.setdefault(spec, None if files else sizes) not in (sizes, None):
                self._known_sizes[spec] = None
            fixed = self._known_sizes[spec]
            key = spec, fixed, fixed is None and len(block[0]) == 1
            if key not in self._compiled:
                self._compiled[key] = self._trace(*key)
            return self._compiled[key]

    def _compile_files(self, spec: Any, sizes: Any, count: int, jpeg: bool) -> Any:
        """Return the function of `count` rows with files; None while there were too few blocks of them."""
        key = spec, sizes, count, jpeg
        with self._lock:
            self._blocks[key] += 1
            if key not in self._compiled and self._blocks[key] > _MIN_BLOCKS:
                self._compiled[key] = self._trace_files(*key)
            return self._compiled.get(key)

    def _trace_files(self, spec: Any, sizes: Any, count: int, jpeg: bool) -> Any:
        specs = [
            tf.TensorSpec([count], tf.string) if index in self._files else tf.TensorSpec([count, *size], dtype)
            for index, ((dtype, _), size) in enumerate(zip(spec, sizes, strict=True))
        ]

        def run(keys: Any, *block: Any) -> tuple[Any, ...]:
            images = [
                tf.stack([tf.ensure_shape(decoded(contents, jpeg), sizes[index]) for contents in tf.unstack(column)])
                if index in self._files else column
                for index, column in enumerate(block)
            ]
            return self._run(keys, images)

        return _trace_on_cpu(run, count, specs)

    def _trace(self, spec: Any, sizes: Any, single: bool) -> Any:
        shapes = sizes or [[None] * (rank - 1) for _, rank in spec]
        specs = [tf.TensorSpec([None, *shape], dtype) for (dtype, _), shape in zip(spec, shapes, strict=True)]

        def run(keys: Any, *block: Any) -> tuple[Any, ...]:
            return self._run(keys, block, single=single)

        return _trace_on_cpu(run, None, specs)

    def _run(self, keys: Any, block: Sequence[Any], *, single: bool = False) -> tuple[Any, ...]:
        def run_part(part: RowPart, columns: tuple[Any, ...]) -> Sequence[Any]:
            if part.by_block:
                return part.function(*columns)
            if single:
                row = part.function((keys[0], 0), *(column[0] for column in columns))
                return [value[tf.newaxis] for value in row]
            return self._loop(part, keys, columns)

        for part in self._parts:
            block = part.applied(functools.partial(run_part, part), block)
        return tuple(block)

    def _loop(self, part: RowPart, keys: Any, block: tuple[Any, ...]) -> tuple[Any, ...]:
        run_row = tf.function(lambda key, *row: part.function((key, 0), *row), autograph=False).get_concrete_function(
            tf.TensorSpec([], tf.int64), *(tf.TensorSpec(column.shape[1:], column.dtype) for column in block)
        )
        outputs = tuple(tf.TensorSpec(value.shape, value.dtype) for value in run_row.structured_outputs)
        return tf.map_fn(
            lambda row: run_row(*row), (keys, *block), parallel_iterations=self._parallel, fn_output_signature=outputs
        )


def call_row(function: Callable[..., Any], seed: Sequence[int], *columns: Any) -> Any:
    with tf.device("CPU"):
        try:
            results = function(tuple(seed), *map(tf.convert_to_tensor, columns))
        except tf.errors.InvalidArgumentError as error:
            raise read_error(error) from None
    return tuple(result.numpy() for result in results)


def _trace_on_cpu(run: Callable[..., Any], count: int | None, specs: Sequence[Any]) -> Any:
    """Trace a function of keys and columns for `count` rows, or for any number where it is None."""
    with tf.device("CPU"):
        return tf.function(run, autograph=False).get_concrete_function(tf.TensorSpec([count], tf.int64), *specs)
