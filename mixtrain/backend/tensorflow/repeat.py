"""A step repeated in a graph by one loop, with stacked results; a step may end the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from mixtrain.backend.signatures import Row
from mixtrain.typing import Tensor


def repeated(step: Callable[[Tensor], Row], count: Any) -> Row:
    """Run a step for each index in ``range(count)``, in order, in a graph that is being traced.

    `step`: Takes an index, an int32 scalar; returns tensors of fixed shapes. `count`: At least one, an int32 scalar.

    Returns: The results, each stacked on a new first axis.
    """
    return repeated_until(lambda index: (step(index), (), ()), count)[0]


def once(step: Callable[[], Row]) -> Row:
    """Run a step as `repeated` does, a single time.

    It runs in a loop all the same: outside of one TensorFlow rewrites it differently (which sums are grouped), and the
    last bit of its results would depend on how many steps a call runs.
    """
    specs = tf.function(step, autograph=False).get_concrete_function().structured_outputs
    begin = True, *map(_empty, specs)
    shapes = tf.TensorShape(()), *(spec.shape for spec in specs)
    outputs = tf.while_loop(lambda go, *_: go, lambda *_: (False, *step()), begin, shapes, parallel_iterations=1)
    return outputs[1:]  # type: ignore[no-any-return]


def repeated_until(step: Callable[[Tensor], tuple[Row, Row, Row]], count: Any) -> tuple[Row, Row]:
    """Run a step as `repeated` does, at most `count` times, up to and including the first one that is the last.

    `step`: Takes an index; returns its results, tensors of which only those of the last step are returned, and a tuple
    of whether it is the last, a bool scalar; () if none is.

    Returns: The results of the steps that ran, stacked; and the other tensors of the last step.
    """
    # All steps run in the loop, so that all are compiled alike; a trace tells what they return.
    trace = tf.function(step, autograph=False).get_concrete_function(tf.TensorSpec((), tf.int32))
    specs, final, last = trace.structured_outputs
    groups = _group_alike(specs)

    def grouped(values: Row) -> list[Any]:
        parts = ([values[index] for index in indices] for indices in groups)
        return [part[0] if len(part) == 1 else tf.stack(part) for part in parts]

    rows = []
    for indices in groups:
        spec = specs[indices[0]]
        shape = spec.shape if len(indices) == 1 else (len(indices), *spec.shape)
        rows.append(tf.TensorArray(spec.dtype, size=count, element_shape=shape))

    def cond(index: Any, last: Row, *_: Any) -> Any:
        return tf.logical_and(index < count, tf.logical_not(last[0])) if last else index < count

    def body(index: Any, last: Row, final: Row, rows: Any) -> tuple[Any, ...]:
        results, final, last = step(index)
        rows = [row.write(index, value) for row, value in zip(rows, grouped(results), strict=True)]
        return index + 1, last, final, rows

    begin = tf.constant(0), tuple(tf.constant(False) for _ in last), tf.nest.map_structure(_empty, final), rows
    shapes = tuple(tf.nest.map_structure(lambda value: value.shape, part) for part in (begin[0], begin[1], final))
    num_steps, _, final, rows = tf.while_loop(
        cond, body, begin, (*shapes, [tf.TensorShape(None)] * len(rows)), parallel_iterations=1
    )
    results: dict[int, Any] = {}
    for indices, row in zip(groups, rows, strict=True):
        # A loop that ended early has not written the last rows.
        stacked = row.gather(tf.range(num_steps)) if last else row.stack()
        results |= zip(indices, [stacked] if len(indices) == 1 else tf.unstack(stacked, axis=1), strict=True)
    return tuple(results[index] for index in range(len(specs))), final


def _empty(spec: Any) -> Any:
    """Return the initial loop value for a spec, which the first step replaces."""
    return tf.zeros([size or 0 for size in spec.shape], spec.dtype)


def _group_alike(values: Row) -> list[list[int]]:
    """Group the indices of values by shape and dtype: each `TensorArray` costs a loop five operations an iteration."""
    groups: dict[Any, list[int]] = {}
    for index, value in enumerate(values):
        shape = value.shape
        groups.setdefault((value.dtype, tuple(shape)) if shape.is_fully_defined() else index, []).append(index)
    return list(groups.values())
