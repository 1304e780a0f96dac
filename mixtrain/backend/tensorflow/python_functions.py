"""Python functions that graphs call: held by those graphs."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any, Final

import tensorflow as tf

_COLLECTION: Final = "mixtrain_python_functions"
# TensorFlow's threads may end a pass over data just after Python let go of it, and call these then.
_latest: Final[collections.deque[Any]] = collections.deque(maxlen=24)


def numpy_function(function: Callable[..., Any], values: Sequence[Any], dtypes: Any) -> Any:
    """Call a Python function on NumPy arrays, as `tf.numpy_function` does; the graph in force holds the function.

    TensorFlow (2.21) lets the default graph of the process hold it: data that was read once would stay until
    `keras.backend.clear_session()`, and what is still in use would be gone after it.

    Args:
        function: Takes and returns arrays.
        values: Its arguments.
        dtypes: Of its results.
    """

    def called(*arrays: Any) -> Any:
        return function(*arrays)

    results = tf.numpy_function(called, values, dtypes)
    registered = getattr(called, "ag_dnc_wrapper__", called)
    _latest.append(registered)
    graph = tf.compat.v1.get_default_graph()
    while graph.building_function:
        graph.add_to_collection(_COLLECTION, registered)
        graph = graph.outer_graph
    held = getattr(graph, "_py_funcs_used_in_graph", [])
    if registered in held:
        held.remove(registered)
    return results
