"""The functions that are being traced around the caller, and functions that AutoGraph does not convert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

F = TypeVar("F", bound=Callable[..., Any])


def traces() -> tuple[Any, ...]:
    """Return the functions that are being traced in this thread, the innermost first.

    A branch or a loop inside a function is a function of its own. Each supports weak references.
    """
    graphs: list[Any] = []
    if not tf.executing_eagerly():
        graph: Any = tf.compat.v1.get_default_graph()
        while hasattr(graph, "outer_graph"):
            graphs.append(graph)
            graph = graph.outer_graph
    return tuple(graphs)


def value_scope() -> Any:
    """Return the graph that operations of the caller belong to, None if eager.

    Tensors of a loop or a branch cannot be used outside of it: compare by ``is``.
    """
    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def has_results(trace: Any) -> bool:
    """Whether the trace of a function of `traces` ran to its end and has outputs."""
    return bool(trace.outputs)


def without_autograph(function: F) -> F:
    """Return a function that a user's ``@tf.function`` traces without AutoGraph, like all functions that it calls.

    AutoGraph would rewrite their source to let tensors decide branches, which takes tens of seconds for no effect.
    """
    return tf.autograph.experimental.do_not_convert(function)  # type: ignore[no-any-return]
