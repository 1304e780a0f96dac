"""A function of one row, compiled once and run over blocks of rows: the transforms of a data pipeline."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from mixtrain.backend.tensorflow.requirements import read_error

Columns = tuple[np.ndarray, ...]


@dataclasses.dataclass(frozen=True)
class RowPart:
    """A part of a `RowFunction`.

    Attributes:
        function: From a seed (two numbers) and one tensor per column to a tuple of tensors; without the seed, and with
            rows along a first axis of each tensor, where it is for blocks.
        by_block: Whether it takes whole blocks, which costs less than row by row.
    """

    function: Callable[..., tuple[Any, ...]]
    by_block: bool


class RowFunction:
    """A function of a row's seed and columns, in parts.

    A block of rows is one call of a compiled function. A part that takes single rows is a loop in it, several of whose
    rows are under way at a time. The graph is made for the sizes of the first rows, and anew for any size where a row
    has others.

    Args:
        parts: One after the other.
        parallel: How many rows of a block are under way at a time.
    """

    def __init__(self, parts: Sequence[RowPart], *, parallel: int) -> None:
        self._parts = tuple(parts)
        self._parallel = parallel
        self._compiled: dict[Any, Any] = {}
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

    def _trace(self, kind: Any, sizes: Any, alone: bool) -> Any:
        shapes = sizes or [[None] * (rank - 1) for _, rank in kind]
        specs = [tf.TensorSpec([None, *shape], dtype) for (dtype, _), shape in zip(kind, shapes, strict=True)]

        def run(keys: Any, *block: Any) -> tuple[Any, ...]:
            for part in self._parts:
                if part.by_block:
                    block = part.function(*block)
                elif alone:
                    row = part.function((keys[0], 0), *(column[0] for column in block))
                    block = tuple(value[tf.newaxis] for value in row)
                else:
                    block = self._loop(part, keys, block)
            return block

        with tf.device("CPU"):
            return tf.function(run, autograph=False).get_concrete_function(tf.TensorSpec([None], tf.int64), *specs)

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
