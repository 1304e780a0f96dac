"""A `tf.data.Dataset` of the rows that a Python generator yields."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from mixtrain.backend.aligned import aligned_empty
from mixtrain.backend.tensorflow.control import numpy_function

Row = tuple[np.ndarray, ...]


class _Passes:
    """The generators of the passes in progress, by number. `factory`: Called at the start of each pass."""

    def __init__(self, factory: Callable[[], Iterator[Row]]) -> None:
        self._factory = factory
        self._numbers = itertools.count()
        self._reading: dict[int, Iterator[Row]] = {}
        self._lock = threading.Lock()

    def begin(self) -> np.ndarray:
        """Return the number of a new pass, an int64 scalar; its generator is released together with the number.

        TensorFlow takes over the memory of the array and holds it as long as the pass, however that ends.
        """
        with self._lock:
            number = next(self._numbers)
        self._reading[number] = iter(self._factory())
        shared = aligned_empty(1, np.array(number, np.int64)).reshape(())
        shared[...] = number
        weakref.finalize(shared.base, self._reading.pop, number).atexit = False
        return shared

    def read(self, number: np.ndarray) -> Row:
        return next(self._reading[int(number)])


def dataset_of(factory: Callable[[], Iterator[Row]], specs: tuple[tf.TensorSpec, ...]) -> tf.data.Dataset:
    """Return a dataset of the rows that generators yield.

    `tf.data.Dataset.from_generator` does the same at a cost. Under Python 3.11 the first one in a process (TensorFlow
    2.21) makes the C library map and unmap the memory of each tensor of 128 KB or more: a fifth of a step of LeNet-5.
    And it registers a generator when the first row is read, so an iterator that ends just before, as one that reads
    ahead may at any time, logs a KeyError.

    `factory`: Called at the start of each pass. `specs`: The specs of the columns.

    Example:
        >>> specs = (tf.TensorSpec([None], tf.int64),)
        >>> rows = dataset_of(lambda: iter([(np.arange(2),), (np.arange(3),)]), specs)
        >>> [row.numpy().tolist() for (row,) in rows]
        [[0, 1], [0, 1, 2]]
    """
    passes = _Passes(factory)
    dtypes = [spec.dtype for spec in specs]

    def read(number: Any) -> Any:
        values = numpy_function(passes.read, [number], dtypes)
        return [tf.ensure_shape(value, spec.shape) for value, spec in zip(values, specs, strict=True)]

    read_graph = tf.function(read, autograph=False).get_concrete_function(tf.TensorSpec([], tf.int64))

    def one_pass(unused: Any) -> tf.data.Dataset:
        number = tf.ensure_shape(numpy_function(passes.begin, [], tf.int64), ())
        # As `Dataset.map`, but the end of the generator ends the dataset, whose length is unknown.
        variant = tf.raw_ops.MapDataset(
            input_dataset=tf.data.experimental.to_variant(tf.data.Dataset.from_tensors(number).repeat()),
            other_arguments=[], f=read_graph, output_types=dtypes, output_shapes=[spec.shape for spec in specs],
            preserve_cardinality=False,
        )
        return tf.data.experimental.from_variant(variant, specs)

    return tf.data.Dataset.from_tensors(tf.constant(0, tf.int64)).flat_map(one_pass)
