"""Control flow of compiled functions: a branch, an order of operations, and calls of Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import tensorflow as tf

from mixtrain.backend.tensorflow.python_functions import numpy_function
from mixtrain.backend.tensorflow.rollback import written_resources
from mixtrain.typing import Tensor, Tree, Variable

# In an update of at least so many weights only the writes wait: if all its operations waited, more of the backward pass
# would be in memory at a time (28 MiB of 371, CIFAR CNN, batch 512). In a smaller update all operations wait: those
# that are ready at the start of a step delay the first product (6 of 91 microseconds, three dense layers of 64).
_MIN_LARGE_UPDATE: Final = 2**16


def cond(
    predicate: Tensor, on_true: Callable[[], Tree], on_false: Callable[[], Tree], *, writes: Sequence[Variable] = ()
) -> None:
    del writes

    def effect(function: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            function()
            return tf.constant(0)

        return run

    tf.cond(predicate, effect(on_true), effect(on_false))


def write_after(tensor: Tensor, function: Callable[[], None], weights: Sequence[Variable]) -> None:
    if tf.executing_eagerly():
        function()
        return
    if sum(math.prod(weight.shape) for weight in weights) < _MIN_LARGE_UPDATE:
        with tf.control_dependencies([tensor]):
            function()
        return
    graph = tf.compat.v1.get_default_graph()
    count = len(graph.get_operations())
    function()
    for operation in graph.get_operations()[count:]:
        if written_resources(operation):
            # A private method: `tf.control_dependencies` would apply to all operations that are created inside it.
            operation._add_control_input(tensor.op)


def call_python(function: Callable[..., None], tensors: Sequence[Tensor]) -> None:
    """XLA refuses a function with such a call, with TensorFlow's own error."""
    values = [tf.cast(value, tf.float32) if value.dtype == tf.bfloat16 else value for value in tensors]
    if tf.executing_eagerly():
        function(*(value.numpy() for value in values))
    else:
        numpy_function(function, values, [])
