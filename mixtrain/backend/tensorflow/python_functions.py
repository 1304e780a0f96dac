"""Python functions that graphs call, kept alive by those graphs."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any, Final

import tensorflow as tf

_COLLECTION: Final = "mixtrain_python_functions"
# TensorFlow's threads may still call these just after Python released a pass over data.
_latest: Final[collections.deque[Any]] = collections.deque(maxlen=24)


def numpy_function(function: Callable[..., Any], values: Sequence[Any], dtypes: Any) -> Any:
    """Call a Python function on NumPy arrays like `tf.numpy_function`; the current graph keeps the function alive.

    In TensorFlow (2.21) the default graph of the process does: data that was read once would stay in memory until
    `keras.backend.clear_session()`, which would also delete functions still in use.

    Args:
        function: Takes and returns arrays.
        values: Its arguments.
        dtypes: The dtypes of its results.
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
