"""Python functions that graphs call: they live as long as the graphs, and not as long as the session."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from mixtrain.backend.tensorflow import control
from mixtrain.backend.tensorflow.compile import graph_function
from mixtrain.backend.tensorflow.control import numpy_function

pytestmark = pytest.mark.tensorflow


class Doubling:
    """A function that can be referred to weakly."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return 2 * x


def compiled(function: Any) -> Any:
    """Return a compiled function that calls Python in a branch."""
    one = tf.TensorSpec([2], tf.float32)
    call = lambda x: numpy_function(function, [x], tf.float32)  # noqa: E731
    return graph_function(lambda x: tf.cond(x[0] > 0, lambda: call(x), lambda: x)).get_concrete_function(one)


def test_a_function_is_still_there_after_the_session_was_cleared() -> None:
    calling = compiled(Doubling())
    control._latest.clear()
    keras.backend.clear_session()
    assert calling(tf.constant([1.0, 2.0])).numpy().tolist() == [2, 4]


def test_a_function_ends_with_its_graph_but_for_the_latest() -> None:
    function = Doubling()
    calling, alive = compiled(function), weakref.ref(function)
    del function
    gc.collect()
    assert alive() is not None
    del calling
    control._latest.clear()
    gc.collect()
    assert alive() is None
