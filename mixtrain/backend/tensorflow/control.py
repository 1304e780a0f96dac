"""What a compiled function cannot leave to Python: a branch, an order, and a call of Python while it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import tensorflow as tf

from mixtrain.backend.tensorflow.python_functions import numpy_function
from mixtrain.backend.tensorflow.rollback import written_resources

# What leads up to an update of more weights waits for nothing: if it did, more of a backward pass would lie in memory
# at a time (28 MiB of 371, CIFAR CNN, batch 512). In a small step it waits, for what is ready at its start holds up
# the first product (6 of 91 microseconds, three dense layers of 64).
_FEW_WEIGHTS: Final = 2**16


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


def write_after(tensor: Any, function: Callable[[], None], weights: Sequence[Any]) -> None:
    """Run a function that writes only once a tensor has its value, and not at all where that fails.

    Args:
        tensor: The tensor.
        function: Updates weights and what goes with them.
        weights: They.
    """
    if tf.executing_eagerly():
        function()
        return
    if sum(math.prod(weight.shape) for weight in weights) < _FEW_WEIGHTS:
        with tf.control_dependencies([tensor]):
            function()
        return
    graph = tf.compat.v1.get_default_graph()
    before = len(graph.get_operations())
    function()
    for operation in graph.get_operations()[before:]:
        if written_resources(operation):
            # Not public: `tf.control_dependencies` holds for all that is made inside it, and others make the writes.
            operation._add_control_input(tensor.op)


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
