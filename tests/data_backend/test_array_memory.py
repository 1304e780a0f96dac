"""Memory of arrays that Python code passes to a stream: the code may write it again, a compiled step never does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Model, data_backend
from mixtrain.backend.aligned import aligned_copy, aligned_empty

# TensorFlow takes slices of rows of 64 bytes, or multiples of that, without a copy.
SHAPE = (16, 64)


def ones() -> np.ndarray:
    return aligned_copy(np.ones(SHAPE, np.float32))


class Reusing:
    """A dataset that writes each batch into the same arrays."""

    def __init__(self) -> None:
        self.x, self.y = ones(), ones()

    def __len__(self) -> int:
        return 7

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for index in range(7):
            self.x[...], self.y[...] = index, -index
            yield self.x, self.y


def test_rows_are_copied_as_they_are_read() -> None:
    reused = Reusing()
    iterator = data_backend.pipeline_from_rows(reused.__iter__, (reused.x, reused.y), size=7).graph_iterator()
    read = [tuple(float(np.asarray(value)[0, 0]) for value in next(iterator)) for _ in range(7)]
    assert read == [(index, -index) for index in range(7)]


def test_sink_feed_reads_a_dataset_that_reuses_its_arrays_as_host_feed_does() -> None:
    def weights(sink: bool) -> list[np.ndarray]:
        keras.utils.set_random_seed(1)
        network = keras.Sequential([keras.Input(SHAPE[1:]), keras.layers.Dense(64)])
        Model(network, "mse", keras.optimizers.SGD(0.001)).train(2, Reusing(), dataset_sink_mode=sink)
        return [np.asarray(weight) for weight in network.weights]

    for one, other in zip(weights(True), weights(False), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def second_after_first(iterator: Any) -> Any:
    """Read two elements and compute with the first one, of which the stream keeps nothing by then."""
    import tensorflow as tf

    (first,) = next(iterator)
    with tf.control_dependencies(next(iterator)):
        return tf.square(first * 2.0 + 1.0)


def first_half(iterator: Any) -> Any:
    import tensorflow as tf

    return tf.square(next(iterator)[0][:8] * 2.0 + 1.0)


@pytest.mark.tensorflow
@pytest.mark.parametrize(("compute", "mapped"), [(second_after_first, False), (first_half, False), (first_half, True)])
def test_no_operation_writes_its_result_into_the_arrays(compute: Callable[[Any], Any], mapped: bool) -> None:
    import tensorflow as tf

    for _ in range(3):
        arrays = [ones() for _ in range(3)]
        if mapped:
            index = data_backend.pipeline_from_arrays([np.arange(3)])
            pipeline = index.map_python(lambda index, arrays=arrays: arrays[index], (arrays[0],))
        else:
            rows = [(array,) for array in arrays]
            pipeline = data_backend.pipeline_from_rows(rows.__iter__, rows[0], size=3)
        step = tf.function(compute, autograph=False)
        assert float(tf.reduce_max(step(pipeline.graph_iterator([SHAPE])))) == 9.0
        for array in arrays:
            np.testing.assert_array_equal(array, 1.0)


def test_a_copy_of_a_single_number_is_an_array() -> None:
    copy = aligned_copy(np.array(2.0, np.float32))
    assert (copy.shape, float(copy), copy.ctypes.data % 64) == ((), 2.0, 0)
    assert aligned_empty(3, np.array("text")).shape == (3,)
