"""What a compiled function cannot leave to Python: a branch, an order, and a call of Python while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from mixtrain.backend.tensorflow.python_functions import numpy_function
from mixtrain.backend.tensorflow.rollback import places_of


def cond(
    predicate: Any, on_true: Callable[[], Any], on_false: Callable[[], Any], *, writes: Sequence[Any] = ()
) -> None:
    """Run one of two functions for what they write; neither's result is used.

    Args:
        predicate: A scalar bool tensor.
        on_true: Run where `predicate` holds.
        on_false: Run where it does not.
        writes: The variables that either function may assign. (A backend without variables in its graphs needs them
            named; this one does not.)
    """
    del writes

    def effect(function: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            function()
            return tf.constant(0)

        return run

    tf.cond(predicate, effect(on_true), effect(on_false))


def write_after(tensor: Any, variables: Iterable[keras.Variable]) -> None:
    """Let variables be written from here on once a tensor has its value, and not at all where that fails.

    What leads up to a write waits for nothing: if it did, more of a backward pass would lie in memory at a time.
    """
    if tf.executing_eagerly():
        return
    # In a graph a variable is written after it was read, if that comes first in the code.
    with tf.control_dependencies([tensor]):
        for variable in variables:
            for place in places_of(variable):
                place.read()


def call_python(function: Callable[..., None], tensors: Sequence[Any]) -> None:
    """Call a Python function for its effect whenever this place is reached, in a compiled function too.

    XLA has no such call: a function that it compiles is refused with TensorFlow's own error.

    Args:
        function: Takes the tensors' values as NumPy arrays (bfloat16 comes as float32); returns nothing.
        tensors: The tensors.
    """
    values = [tf.cast(value, tf.float32) if value.dtype == tf.bfloat16 else value for value in tensors]
    if tf.executing_eagerly():
        function(*(value.numpy() for value in values))
    else:
        numpy_function(function, values, [])
