"""The functions that are being traced around the caller, and functions that AutoGraph does not convert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

F = TypeVar("F", bound=Callable[..., Any])


def traces() -> tuple[Any, ...]:
    graphs: list[Any] = []
    if not tf.executing_eagerly():
        graph: Any = tf.compat.v1.get_default_graph()
        while hasattr(graph, "outer_graph"):
            graphs.append(graph)
            graph = graph.outer_graph
    return tuple(graphs)


def value_scope() -> Any:
    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def has_results(trace: Any) -> bool:
    return bool(trace.outputs)


def without_autograph(function: F) -> F:
    return tf.autograph.experimental.do_not_convert(function)  # type: ignore[no-any-return]
