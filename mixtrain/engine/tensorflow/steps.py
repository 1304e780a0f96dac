"""A step compiled once, and run on a batch a call, on several batches given together, or on those of an iterator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from mixtrain import context
from mixtrain.engine.facts import JitChoice
from mixtrain.engine.tensorflow.compile import compile_function, graph_function, trace_count
from mixtrain.engine.tensorflow.passes import Stacked

Row = tuple[Any, ...]


class CompiledSteps:
    """One step of training in its three ways of being called; they share one compiled step.

    Args:
        function: Takes the columns of a batch, tensors, and returns a tuple of tensors of fixed shapes; it writes
            variables by `assign`.
        choice: Whether the step is compiled with XLA.

    Example:
        >>> steps = CompiledSteps(lambda x: (2 * x,), choice=JitChoice(False, "an example"))
        >>> (rows,), _ = steps.several([(tf.constant([x]),) for x in (1.0, 2.0, 3.0)])
        >>> steps.one(tf.constant([4.0]))[0].numpy().tolist(), rows.numpy().ravel().tolist(), steps.traces()
        ([8.0], [2.0, 4.0, 6.0], 1)
    """

    def __init__(self, function: Callable[..., Row], *, choice: JitChoice) -> None:
        self._eager = not context.graph_mode()
        self.one: Any = compile_function(function, choice=choice)
        self._streamed = self._streamed_eagerly if self._eager else graph_function(self._stream)
        self._several: dict[str, tuple[Callable[..., Row], Sequence[Any]]] = {}

    def streamed(self, iterator: Any, count: int) -> Row:
        """Run `count` steps on batches that are read from an engine's iterator.

        Returns:
            The results of the steps, stacked on a new first axis of length `count`.
        """
        return self._streamed(iterator, tf.constant(count))

    def several(self, batches: Sequence[Row]) -> tuple[Row, Callable[[], None]]:
        """Run a step on each of several batches.

        Args:
            batches: Batches of the same structure, shapes and dtypes; at least one.

        Returns:
            The stacked results, and a function that takes all those steps back.

        Raises:
            Exception: What a step raised; the steps before it are taken back.
        """
        if isinstance(batches, Stacked):
            columns = batches.columns
        else:
            columns = tf.nest.map_structure(lambda *values: tf.stack(values), *batches)
        specs = tf.nest.map_structure(lambda value: tf.TensorSpec((None, *value.shape[1:]), value.dtype), columns)
        key = str(specs)
        if key not in self._several:
            compiled: Any = graph_function(self._run_several)
            run = compiled.get_concrete_function(*specs)
            self._several[key] = run, run.variables
        run, variables = self._several[key]
        # These share the variables' memory until the first step writes there.
        before = [variable.read_value() for variable in variables]
        undo = functools.partial(_assign, variables, before)
        try:
            return run(*tf.nest.flatten(columns)), undo
        except BaseException:  # Ctrl-C too: nobody has been told of these steps.
            undo()
            raise

    def traces(self) -> int:
        """Return how often the step was traced."""
        return trace_count(self.one)

    # ---- what is compiled -------------------------------------------------------------------------------------
    def _stream(self, iterator: Any, count: Any) -> Row:
        return _rows(lambda index: self.one(*next(iterator)), count)

    def _streamed_eagerly(self, iterator: Any, count: Any) -> Row:
        rows = [self.one(*next(iterator)) for _ in range(int(count))]
        return tuple(tf.stack(column) for column in zip(*rows, strict=True))

    def _run_several(self, *columns: Any) -> Row:
        count = tf.shape(tf.nest.flatten(columns)[0])[0]
        return _rows(lambda index: self.one(*tf.nest.map_structure(lambda column: column[index], columns)), count)


def _rows(step: Callable[[Any], Row], count: Any) -> Row:
    """Run a step for each index under `count`, at least one, in a graph; return the stacked results."""
    rows = [
        tf.TensorArray(value.dtype, size=count, element_shape=value.shape).write(0, value)
        for value in step(tf.constant(0))
    ]

    def body(index: Any, *rows: Any) -> tuple[Any, ...]:
        return (index + 1, *(row.write(index, value) for row, value in zip(rows, step(index), strict=True)))

    _, *rows = tf.while_loop(lambda index, *_: index < count, body, (tf.constant(1), *rows), parallel_iterations=1)
    return tuple(row.stack() for row in rows)


def _assign(variables: Sequence[Any], values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
