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
    first = step(tf.constant(0))
    groups = _alike(first)

    def together(values: Row) -> list[Any]:
        return [values[places[0]] if len(places) == 1 else tf.stack([values[at] for at in places]) for places in groups]

    rows = [
        tf.TensorArray(value.dtype, size=count, element_shape=value.shape).write(0, value) for value in together(first)
    ]

    def body(index: Any, *rows: Any) -> tuple[Any, ...]:
        return (index + 1, *(row.write(index, value) for row, value in zip(rows, together(step(index)), strict=True)))

    _, *rows = tf.while_loop(lambda index, *_: index < count, body, (tf.constant(1), *rows), parallel_iterations=1)
    found: dict[int, Any] = {}
    for places, row in zip(groups, rows, strict=True):
        stacked = row.stack()
        found |= zip(places, [stacked] if len(places) == 1 else tf.unstack(stacked, axis=1), strict=True)
    return tuple(found[place] for place in range(len(first)))


def _alike(values: Row) -> list[list[int]]:
    """Return the places of values of one shape and format together: each array takes a loop five operations a round."""
    groups: dict[Any, list[int]] = {}
    for place, value in enumerate(values):
        shape = value.shape
        groups.setdefault((value.dtype, tuple(shape)) if shape.is_fully_defined() else place, []).append(place)
    return list(groups.values())
