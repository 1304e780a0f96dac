"""Custom gradients of traced functions, kept alive by their graph and not by the process."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

import tensorflow as tf
from tensorflow.python.framework import ops

# `tf.custom_gradient` registers a function under a unique name in each trace, and nothing removes it (TensorFlow 2.21).
# The function refers to its graph, so every compiled training step would stay in memory, and each garbage collection,
# such as that of `keras.backend.clear_session()`, would visit all of them.
_REGISTERED: Final[dict[str, dict[str, Any]]] = ops.gradient_registry._registry
_FUNCTION: Final = "type"
_COLLECTION: Final = "mixtrain_custom_gradients"


class _Gradient:
    """A registered function, kept alive by the graphs that use it and unregistered with them."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.function = function
        weakref.finalize(self, _REGISTERED.pop, name, None).atexit = False


@contextlib.contextmanager
def custom_gradients_with_graph() -> Iterator[None]:
    """Let the current graph keep alive the custom gradients of the code that is traced inside."""
    previous = set(_REGISTERED)
    try:
        yield
    finally:
        graph = tf.compat.v1.get_default_graph()
        for name in set(_REGISTERED) - previous:
            _move(name, graph)


def _move(name: str, graph: Any) -> None:
    """Let a graph, and the inner ones that use it, keep a custom gradient alive; not one of another thread's trace."""
    entry = _REGISTERED.get(name, {})
    function = entry.get(_FUNCTION)
    users = list(_graphs_up_to(graph, _graph_of(function)))
    # If other versions of TensorFlow have no such closures, nothing is changed.
    if function is not None and graph in users:
        gradient = _Gradient(name, function)
        for user in users:
            user.add_to_collection(_COLLECTION, gradient)
        entry[_FUNCTION] = _weak_call(gradient)


def _weak_call(gradient: _Gradient) -> Callable[..., Any]:
    reference = weakref.ref(gradient)
    return lambda *args: reference().function(*args)  # type: ignore[union-attr]


def _graph_of(function: Any) -> Any:
    """Return the graph of a function of `tf.custom_gradient`; None for other functions."""
    tape_gradient = _closure(function).get("tape_grad_fn")
    tensors = tf.nest.flatten(_closure(tape_gradient).get("result"))
    return getattr(tensors[0], "graph", None) if tensors else None


def _closure(function: Any) -> dict[str, Any]:
    return dict(inspect.getclosurevars(function).nonlocals) if inspect.isfunction(function) else {}


def _graphs_up_to(outermost: Any, graph: Any) -> Iterator[Any]:
    """Yield a graph and those around it, up to the outermost one."""
    while graph is not None:
        yield graph
        graph = None if graph is outermost else getattr(graph, "outer_graph", None)
