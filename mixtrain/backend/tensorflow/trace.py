"""The functions that are being compiled around the code that asks, and code that is compiled as it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

F = TypeVar("F", bound=Callable[..., Any])


def traces() -> tuple[Any, ...]:
    """Return the functions that are being compiled here, the innermost first; none outside of compilation.

    A branch or a loop inside a function counts as one of its own. Each can be referred to weakly.
    """
    found: list[Any] = []
    if not tf.executing_eagerly():
        graph: Any = tf.compat.v1.get_default_graph()
        while hasattr(graph, "outer_graph"):
            found.append(graph)
            graph = graph.outer_graph
    return tuple(found)


def has_results(trace: Any) -> bool:
    """Whether a function of `traces` was compiled to its end, and returns something."""
    return bool(trace.outputs)


def as_written(function: F) -> F:
    """Return a function that a user's ``@tf.function`` traces as it is, with all that it calls.

    TensorFlow would rewrite its source, and that of all that it calls, to let tensors decide branches, which takes tens
    of seconds and changes nothing.
    """
    return tf.autograph.experimental.do_not_convert(function)  # type: ignore[no-any-return]
