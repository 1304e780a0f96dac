"""A step repeated in a graph: one loop, whose results come back stacked; it may end at a step that says so."""

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
    return _repeated(lambda index: (step(index), (), ()), count)[0]


def once(step: Callable[[], Row]) -> Row:
    """Run a step as `repeated` does, a single time.

    It is in a loop all the same: outside of one it would be rewritten otherwise (which sums are taken together), and
    the last bit of its numbers would depend on how many steps a call runs.

    Args:
        step: Returns tensors.

    Returns:
        The results.
    """
    told = tf.function(step, autograph=False).get_concrete_function().structured_outputs
    begin = True, *map(_empty, told)
    shapes = tf.TensorShape(()), *(value.shape for value in told)
    ran = tf.while_loop(lambda go, *_: go, lambda *_: (False, *step()), begin, shapes, parallel_iterations=1)
    return ran[1:]  # type: ignore[no-any-return]


def repeated_until(step: Callable[[Any], tuple[Row, Row, Any]], count: Any) -> tuple[Row, Row]:
    """Run a step as `repeated` does, but none after one that says that it is the last.

    Args:
        step: Takes an index; returns its results, tensors that are wanted of the last step alone, and a bool scalar:
            whether it is the last.
        count: How many at most, at least one.

    Returns:
        The results of the steps that ran, stacked; and what is wanted of the last.
    """
    def telling(index: Any) -> tuple[Row, Row, Row]:
        results, kept, last = step(index)
        return results, kept, (last,)

    return _repeated(telling, count)


def _repeated(step: Callable[[Any], tuple[Row, Row, Row]], count: Any) -> tuple[Row, Row]:
    """Run a step that tells by the last of its parts, a bool scalar or nothing, whether it is the last."""
    # Every step is one of the loop's, so that all are compiled alike; what they return is learned from a trace.
    told = tf.function(step, autograph=False).get_concrete_function(tf.TensorSpec((), tf.int32)).structured_outputs
    first, kept, last = told
    groups = _alike(first)

    def together(values: Row) -> list[Any]:
        return [values[places[0]] if len(places) == 1 else tf.stack([values[at] for at in places]) for places in groups]

    rows = []
    for places in groups:
        one = first[places[0]]
        shape = one.shape if len(places) == 1 else (len(places), *one.shape)
        rows.append(tf.TensorArray(one.dtype, size=count, element_shape=shape))

    def going_on(index: Any, last: Row, *_: Any) -> Any:
        return tf.logical_and(index < count, tf.logical_not(last[0])) if last else index < count

    def body(index: Any, last: Row, kept: Row, rows: Any) -> tuple[Any, ...]:
        found, kept, last = step(index)
        rows = [row.write(index, value) for row, value in zip(rows, together(found), strict=True)]
        return index + 1, last, kept, rows

    begin = tf.constant(0), tuple(tf.constant(False) for _ in last), tf.nest.map_structure(_empty, kept), rows
    shapes = tuple(tf.nest.map_structure(lambda value: value.shape, part) for part in (begin[0], begin[1], kept))
    steps, _, kept, rows = tf.while_loop(
        going_on, body, begin, (*shapes, [tf.TensorShape(None)] * len(rows)), parallel_iterations=1
    )
    found: dict[int, Any] = {}
    for places, row in zip(groups, rows, strict=True):
        # Of a loop that ended early some rows were never written.
        stacked = row.gather(tf.range(steps)) if last else row.stack()
        found |= zip(places, [stacked] if len(places) == 1 else tf.unstack(stacked, axis=1), strict=True)
    return tuple(found[place] for place in range(len(first))), kept


def _empty(spec: Any) -> Any:
    """Return a tensor of a kind, which the first step puts its own in place of."""
    return tf.zeros([size or 0 for size in spec.shape], spec.dtype)


def _alike(values: Row) -> list[list[int]]:
    """Return the places of values of one shape and format together: each array takes a loop five operations a round."""
    groups: dict[Any, list[int]] = {}
    for place, value in enumerate(values):
        shape = value.shape
        groups.setdefault((value.dtype, tuple(shape)) if shape.is_fully_defined() else place, []).append(place)
    return list(groups.values())
