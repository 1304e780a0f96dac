"""A stream of what a Python generator yields, as TensorFlow's own data set."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from mixtrain.backend.tensorflow.python_functions import numpy_function

Row = tuple[np.ndarray, ...]


class _Passes:
    """The generators of the passes that are being read, by number.

    Args:
        factory: Called at the start of each pass.
    """

    def __init__(self, factory: Callable[[], Iterator[Row]]) -> None:
        self._factory = factory
        self._numbers = itertools.count()
        self._reading: dict[int, Iterator[Row]] = {}
        self._lock = threading.Lock()

    def begin(self) -> np.ndarray:
        with self._lock:
            number = next(self._numbers)
        self._reading[number] = iter(self._factory())
        return np.array(number, np.int64)

    def read(self, number: np.ndarray) -> Row:
        return next(self._reading[int(number)])

    def end(self, number: np.ndarray) -> np.ndarray:
        self._reading.pop(int(number), None)
        return np.array(0, np.int64)


def dataset_of(factory: Callable[[], Iterator[Row]], specs: tuple[tf.TensorSpec, ...]) -> tf.data.Dataset:
    """Return the rows that generators yield.

    `tf.data.Dataset.from_generator` does the same, but registers a generator when its first row is read. An iterator
    that ends between the start of a pass and that row, as one that reads ahead may at any time, then logs a KeyError of
    `finalize_py_func`. Here the generator is registered as the pass begins.

    Args:
        factory: Called at the start of each pass.
        specs: Of the columns.

    Example:
        >>> specs = (tf.TensorSpec([None], tf.int64),)
        >>> rows = dataset_of(lambda: iter([(np.arange(2),), (np.arange(3),)]), specs)
        >>> [row.numpy().tolist() for (row,) in rows]
        [[0, 1], [0, 1, 2]]
    """
    passes = _Passes(factory)
    dtypes = [spec.dtype for spec in specs]
    scalar = tf.TensorSpec([], tf.int64)

    def begin() -> Any:
        return tf.ensure_shape(numpy_function(passes.begin, [], tf.int64), ())

    def read(number: Any) -> Any:
        values = numpy_function(passes.read, [number], dtypes)
        return [tf.ensure_shape(value, spec.shape) for value, spec in zip(values, specs, strict=True)]

    def end(number: Any) -> Any:
        return tf.ensure_shape(numpy_function(passes.end, [number], tf.int64), ())

    functions = [
        tf.function(one, autograph=False).get_concrete_function(*taken)
        for one, taken in ((begin, ()), (read, (scalar,)), (end, (scalar,)))
    ]

    def one_pass(unused: Any) -> tf.data.Dataset:
        variant = tf.raw_ops.GeneratorDataset(
            init_func_other_args=[], next_func_other_args=[], finalize_func_other_args=[],
            init_func=functions[0], next_func=functions[1], finalize_func=functions[2],
            output_types=dtypes, output_shapes=[spec.shape for spec in specs],
        )
        return tf.data.experimental.from_variant(variant, specs)

    return tf.data.Dataset.from_tensors(tf.constant(0, tf.int64)).flat_map(one_pass)
