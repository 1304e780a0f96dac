"""Gradients that traced code defines for itself: kept as long as their graph, not as long as the process."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

import tensorflow as tf
from tensorflow.python.framework import ops

# `tf.custom_gradient` registers a function under a name of its own each time that it is traced, and nothing removes it
# (TensorFlow 2.21). The function refers to its graph, so every training step that was ever compiled would stay, and
# each garbage collection, such as that of `keras.backend.clear_session()`, would go through all of them.
_REGISTERED: Final[dict[str, dict[str, Any]]] = ops.gradient_registry._registry
_FUNCTION: Final = "type"
_COLLECTION: Final = "mixtrain_custom_gradients"


class _Gradient:
    """A registered function, held by the graphs that use it; it leaves the registry with them."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.function = function
        weakref.finalize(self, _REGISTERED.pop, name, None).atexit = False


@contextlib.contextmanager
def custom_gradients_with_graph() -> Iterator[None]:
    """Let the graph in force hold the custom gradients of what is traced inside."""
    before = set(_REGISTERED)
    try:
        yield
    finally:
        graph = tf.compat.v1.get_default_graph()
        for name in set(_REGISTERED) - before:
            _move(name, graph)


def _move(name: str, graph: Any) -> None:
    """Let a graph, and those inside that use it, hold a custom gradient; not one of another thread's trace."""
    entry = _REGISTERED.get(name, {})
    function = entry.get(_FUNCTION)
    users = list(_up_to(graph, _graph_of(function)))
    # Where TensorFlow no longer has such closures, all is left as it is.
    if function is not None and graph in users:
        gradient = _Gradient(name, function)
        for user in users:
            user.add_to_collection(_COLLECTION, gradient)
        entry[_FUNCTION] = _without_holding(gradient)


def _without_holding(gradient: _Gradient) -> Callable[..., Any]:
    reference = weakref.ref(gradient)
    return lambda *args: reference().function(*args)  # type: ignore[union-attr]


def _graph_of(function: Any) -> Any:
    """Return the graph that a function of `tf.custom_gradient` is of; None for other functions."""
    of_tape = _closure(function).get("tape_grad_fn")
    tensors = tf.nest.flatten(_closure(of_tape).get("result"))
    return getattr(tensors[0], "graph", None) if tensors else None


def _closure(function: Any) -> dict[str, Any]:
    return dict(inspect.getclosurevars(function).nonlocals) if inspect.isfunction(function) else {}


def _up_to(outermost: Any, graph: Any) -> Iterator[Any]:
    """Yield a graph and those around it, up to the outermost one."""
    while graph is not None:
        yield graph
        graph = None if graph is outermost else getattr(graph, "outer_graph", None)
