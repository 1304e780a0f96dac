"""A function of one row, compiled once and run over blocks of rows: the transforms of a data pipeline."""

from __future__ import annotations

import collections
import functools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import tensorflow as tf

from mixtrain.backend.row_part import RowPart
from mixtrain.backend.tensorflow.encoded import decoded, is_jpeg
from mixtrain.backend.tensorflow.requirements import read_error

Columns = tuple[np.ndarray, ...]

_MIN_BLOCKS: Final = 16  # Of one number of rows with files, after which a graph for it is worth its time.
_IMAGES: Final = (np.dtype(np.uint8), 4)


class RowFunction:
    """A function of a row's seed and columns, in parts.

    A block of rows is one call of a compiled function. A part that takes single rows is a loop in it, several of whose
    rows are under way at a time. The graph is made for the sizes of the first rows, and anew for any size where a row
    has others.

    Image files are decoded in the same call where that is possible: between two calls each image would become an array
    of Python's, and all of them a block again, which takes half as long as to decode them.

    Args:
        parts: One after the other.
        parallel: How many rows of a block are under way at a time.
        files: Which columns `call_files` takes as encoded images.

    Attributes:
        opens: Whether `call_files` is of use.
    """

    opens: Final = True

    def __init__(self, parts: Sequence[RowPart], *, parallel: int, files: Sequence[int] = ()) -> None:
        self._parts = tuple(parts)
        self._parallel = parallel
        self._files = tuple(files)
        self._compiled: dict[Any, Any] = {}
        self._blocks: collections.Counter[Any] = collections.Counter()
        self._sizes: dict[Any, tuple[tuple[int, ...], ...] | None] = {}
        self._lock = threading.Lock()

    def __call__(self, keys: np.ndarray, block: Sequence[np.ndarray]) -> Columns:
        """Return the results for the rows of a block, stacked.

        Args:
            keys: One int64 per row, from which its random numbers come.
            block: One array per column, rows along the first axis.

        Raises:
            ValueError: A row does not fit the function, which says so; see `require`.
        """
        compiled = self._compile(block)
        try:
            results = compiled(tf.constant(keys, tf.int64), *map(tf.constant, block))
        except tf.errors.InvalidArgumentError as error:
            raise read_error(error) from None
        return tuple(result.numpy() for result in results)

    def call_files(self, keys: np.ndarray, columns: Sequence[Sequence[np.ndarray]]) -> Columns | None:
        """Return the results for rows of which some columns are encoded images, decoded by the same call.

        Args:
            keys: One int64 per row, from which its random numbers come.
            columns: For each column the values of the rows.

        Returns:
            The results, stacked. None where the images must be decoded first: one is broken or has another size than
            in the blocks before, there was no block before, or few with as many rows, for each number needs a graph.
        """
        firsts = [column[0] for column in columns]
        kind = tuple(
            _IMAGES if place in self._files else (value.dtype, value.ndim + 1) for place, value in enumerate(firsts)
        )
        sizes = self._sizes.get(kind)
        if sizes is None or not all(map(self._fit, range(len(columns)), sizes, columns)):
            return None
        block = [
            [value.tobytes() for value in column] if place in self._files else np.stack(column)
            for place, column in enumerate(columns)
        ]
        jpegs = {is_jpeg(contents) for place in self._files for contents in block[place]}
        compiled = self._compile_files(kind, sizes, len(keys), *jpegs) if len(jpegs) == 1 else None
        if compiled is None:
            return None
        try:
            results = compiled(tf.constant(keys, tf.int64), *map(tf.constant, block))
        except tf.errors.OpError:  # Which row it was, and in which words, is found one by one.
            return None
        return tuple(result.numpy() for result in results)

    def _fit(self, place: int, size: tuple[int, ...], column: Sequence[np.ndarray]) -> bool:
        """Whether the values of a column have the size of those before; files have any."""
        if place in self._files:
            return all(value.ndim == 1 and value.dtype == np.uint8 for value in column)
        return {(value.dtype, value.shape) for value in column} == {(column[0].dtype, size)}

    def _compile(self, block: Sequence[np.ndarray]) -> Any:
        kind = tuple((array.dtype, array.ndim) for array in block)
        sizes = tuple(array.shape[1:] for array in block)
        with self._lock:
            files = any(array.ndim == 2 and array.dtype == np.uint8 for array in block)  # Hardly two of one length.
            if self._sizes.setdefault(kind, None if files else sizes) not in (sizes, None):
                self._sizes[kind] = None
            fixed = self._sizes[kind]
            alone = fixed is None and len(block[0]) == 1
            if (kind, fixed, alone) not in self._compiled:
                self._compiled[kind, fixed, alone] = self._trace(kind, fixed, alone)
            return self._compiled[kind, fixed, alone]

    def _compile_files(self, kind: Any, sizes: Any, count: int, jpeg: bool) -> Any:
        """Return the function of `count` rows with files; None where it is not worth its time yet."""
        form = kind, sizes, count, jpeg
        with self._lock:
            self._blocks[form] += 1
            if form not in self._compiled and self._blocks[form] > _MIN_BLOCKS:
                self._compiled[form] = self._trace_files(kind, sizes, count, jpeg)
            return self._compiled.get(form)

    def _trace_files(self, kind: Any, sizes: Any, count: int, jpeg: bool) -> Any:
        specs = [
            tf.TensorSpec([count], tf.string) if place in self._files else tf.TensorSpec([count, *size], dtype)
            for place, ((dtype, _), size) in enumerate(zip(kind, sizes, strict=True))
        ]

        def run(keys: Any, *block: Any) -> tuple[Any, ...]:
            images = [
                tf.stack([tf.ensure_shape(decoded(contents, jpeg), sizes[place]) for contents in tf.unstack(column)])
                if place in self._files else column
                for place, column in enumerate(block)
            ]
            return self._run(keys, images)

        return _traced(run, count, specs)

    def _trace(self, kind: Any, sizes: Any, alone: bool) -> Any:
        shapes = sizes or [[None] * (rank - 1) for _, rank in kind]
        specs = [tf.TensorSpec([None, *shape], dtype) for (dtype, _), shape in zip(kind, shapes, strict=True)]

        def run(keys: Any, *block: Any) -> tuple[Any, ...]:
            return self._run(keys, block, alone=alone)

        return _traced(run, None, specs)

    def _run(self, keys: Any, block: Sequence[Any], *, alone: bool = False) -> tuple[Any, ...]:
        def run_part(part: RowPart, columns: tuple[Any, ...]) -> Sequence[Any]:
            if part.by_block:
                return part.function(*columns)
            if alone:
                row = part.function((keys[0], 0), *(column[0] for column in columns))
                return [value[tf.newaxis] for value in row]
            return self._loop(part, keys, columns)

        for part in self._parts:
            block = part.applied(functools.partial(run_part, part), block)
        return tuple(block)

    def _loop(self, part: RowPart, keys: Any, block: tuple[Any, ...]) -> tuple[Any, ...]:
        one = tf.function(lambda key, *row: part.function((key, 0), *row), autograph=False).get_concrete_function(
            tf.TensorSpec([], tf.int64), *(tf.TensorSpec(column.shape[1:], column.dtype) for column in block)
        )
        outputs = tuple(tf.TensorSpec(value.shape, value.dtype) for value in one.structured_outputs)
        return tf.map_fn(
            lambda row: one(*row), (keys, *block), parallel_iterations=self._parallel, fn_output_signature=outputs
        )


def call_row(function: Callable[..., Any], seed: Sequence[int], *columns: Any) -> Any:
    """Return, as NumPy arrays, what a function of a seed and tensors makes of one row at once, uncompiled."""
    with tf.device("CPU"):
        try:
            results = function(tuple(seed), *map(tf.convert_to_tensor, columns))
        except tf.errors.InvalidArgumentError as error:
            raise read_error(error) from None
    return tuple(result.numpy() for result in results)


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _traced(run: Callable[..., Any], count: int | None, specs: Sequence[Any]) -> Any:
    """Return a function of keys and columns, compiled for `count` rows; None for any number."""
    with tf.device("CPU"):
        return tf.function(run, autograph=False).get_concrete_function(tf.TensorSpec([count], tf.int64), *specs)
