"""A step repeated in a graph: one loop, whose results come back stacked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

Row = tuple[Any, ...]


def repeated(step: Callable[[Any], Row], count: Any) -> Row:
    """Run a step for each index under a count, in order, in a graph that is being compiled.

    Args:
        step: Takes an index, an int32 scalar; returns tensors of fixed shapes.
        count: How many, at least one: an int32 scalar.

    Returns:
        The results, each stacked on a new first axis.
    """
    rows = [
        tf.TensorArray(value.dtype, size=count, element_shape=value.shape).write(0, value)
        for value in step(tf.constant(0))
    ]

    def body(index: Any, *rows: Any) -> tuple[Any, ...]:
        return (index + 1, *(row.write(index, value) for row, value in zip(rows, step(index), strict=True)))

    _, *rows = tf.while_loop(lambda index, *_: index < count, body, (tf.constant(1), *rows), parallel_iterations=1)
    return tuple(row.stack() for row in rows)
