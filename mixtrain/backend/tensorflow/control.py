"""Control flow of compiled functions: a branch, a loop, an order of operations, and calls of Python."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import tensorflow as tf

from mixtrain.backend.tensorflow.graph_writes import written_resources
from mixtrain.typing import Shape, Tensor, Tree, Variable

# In an update of at least so many weights only the writes wait: if all its operations waited, more of the backward pass
# would be in memory at a time (28 MiB of 371, CIFAR CNN, batch 512). In a smaller update all operations wait: those
# that are ready at the start of a step delay the first product (6 of 91 microseconds, three dense layers of 64).
_MIN_LARGE_UPDATE: Final = 2**16
_COLLECTION: Final = "mixtrain_python_functions"
# TensorFlow's threads may still call these just after Python released a pass over data.
_latest: Final[collections.deque[Any]] = collections.deque(maxlen=24)


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


def computed_by_numpy(
    function: Callable[..., Sequence[np.ndarray]], tensors: Sequence[Tensor], shapes: Sequence[Shape],
    dtypes: Sequence[str],
) -> list[Tensor]:
    if tf.executing_eagerly():
        return [*map(tf.constant, function(*(value.numpy() for value in tensors)), dtypes)]
    return [*map(tf.ensure_shape, numpy_function(function, tensors, [*dtypes]), shapes)]


def scan(step: Callable[[Tree, Tree], Tree], initial: Tree, elements: Tree) -> Tree:
    # Not keras.ops.scan, whose loop has no maximum number of steps: XLA could not differentiate it.
    return tf.scan(step, elements, initializer=initial)


def numpy_function(function: Callable[..., Any], values: Sequence[Any], dtypes: Any) -> Any:
    """Call a Python function on NumPy arrays like `tf.numpy_function`; the current graph keeps the function alive.

    In TensorFlow (2.21) the default graph of the process does: data that was read once would stay in memory until
    `keras.backend.clear_session()`, which would also delete functions still in use.
    """

    def call(*arrays: Any) -> Any:
        return function(*arrays)

    results = tf.numpy_function(call, values, dtypes)
    registered = getattr(call, "ag_dnc_wrapper__", call)
    _latest.append(registered)
    graph = tf.compat.v1.get_default_graph()
    while graph.building_function:
        graph.add_to_collection(_COLLECTION, registered)
        graph = graph.outer_graph
    functions = getattr(graph, "_py_funcs_used_in_graph", [])
    if registered in functions:
        functions.remove(registered)
    return results
