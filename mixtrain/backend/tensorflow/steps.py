"""A compiled training step that runs on one batch, on several batches in one call, or on the batches of an iterator."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import tensorflow as tf

from mixtrain import execution
from mixtrain.backend.class_labels import ClassLabels
from mixtrain.backend.info import GroupInfo, JitChoice
from mixtrain.backend.refused_batch import RefusedBatch, refuse_empty
from mixtrain.backend.signatures import IsLast, Row
from mixtrain.backend.tensorflow.batch_check import label_assertions, read_refusal, row_assertions
from mixtrain.backend.tensorflow.compile import REFUSALS, Compilation, DirectCall, graph_function, trace_count
from mixtrain.backend.tensorflow.elements import Stacked
from mixtrain.backend.tensorflow.repeat import once, repeated, repeated_until
from mixtrain.typing import Tensor, Tree, Variable

# A group calls the step that the first call of all has compiled.
GROUPS: Final = GroupInfo(after=2, reads=True)


class CompiledSteps:
    # The three ways share one compiled function.
    sizes: Any = None

    def __init__(self, function: Callable[..., Row], *, choice: JitChoice, labels: ClassLabels | None = None) -> None:
        graph = execution.current.graph_mode
        if graph:
            choice.log()
        self._labels = labels or ClassLabels(())
        make = functools.partial(_Steps, function, self._labels)
        self._compilation = Compilation(make, dataclasses.replace(choice, jit=choice.jit and graph))

    def run(self, *batch: Tree) -> Row:
        compilation = self._compilation
        # `Compilation.run` written out, as each step calls this: tests/train/test_call_depth.py counts the frames.
        try:
            steps = compilation.compiled
            steps.check(batch)
            results = steps.call(*batch)
        except REFUSALS as error:
            with compilation.fallback(error) as plain:
                plain.check(batch)
                return plain.call(*batch)  # type: ignore[no-any-return]
        compilation.untried = False
        return results  # type: ignore[no-any-return]

    def run_stream(self, iterator: Any, count: int) -> Row:
        if not self._compilation.untried:
            return self._compilation.compiled.run_stream(iterator, count)  # type: ignore[no-any-return]
        first, _ = self._first_streamed(iterator)
        if count == 1:
            return first
        rest = self._compilation.compiled.run_stream(iterator, count - 1)
        return tuple(tf.concat(pair, 0) for pair in zip(first, rest, strict=True))

    def _first_streamed(self, iterator: Any) -> tuple[Row, Row]:
        """Run the very first step outside of a loop; return its results, stacked, and its batch.

        A loop could not put back the batch of a step that XLA refuses. Errors of the trace are raised before the batch
        is read.
        """
        spec = iterator.element_spec
        self._compilation.compiled.traced(spec)
        batch = iterator.get_next()
        refuse_empty(batch)
        self._labels.check(batch)
        results = self._compilation.run(lambda steps: steps.traced(spec)(*batch))
        return tuple(value[None] for value in results), batch

    def run_stream_until(self, iterator: Any, count: int, last: IsLast) -> tuple[Row, Row]:
        """The very first call runs a single step."""
        if not self._compilation.untried:
            return self._compilation.compiled.run_stream_until(iterator, count, last)  # type: ignore[no-any-return]
        return self._first_streamed(iterator)

    def run_batches(self, batches: Sequence[Row], last: IsLast | None = None) -> tuple[Row, Callable[[], None]]:
        return self._compilation.run(lambda steps: steps.several(batches, last))  # type: ignore[no-any-return]

    def traces(self) -> int:
        return trace_count(self._compilation.compiled.step)


class _Steps:
    """A step compiled with XLA or in the plain graph, or eager in PYNATIVE_MODE; its streams as in `CompiledSteps`."""

    def __init__(self, function: Callable[..., Row], labels: ClassLabels, jit: bool) -> None:
        graph = execution.current.graph_mode
        self._labels = labels
        self._eager = not graph
        self.step: Any = graph_function(function, jit=jit, inline=True) if graph else function
        # XLA compiles a step alike inside a loop and outside; the plain graph does not.
        single_step = self.step if jit else graph_function(self._single_step)
        # The fastest call of the step, for a batch whose labels were checked.
        self.call: Any = DirectCall(single_step) if graph else self.step
        self.run_stream: Callable[..., Row] = self._stream if graph else self._stream_eagerly
        self.run_stream_until: Callable[..., Any] = self._stream_until if graph else self._stream_until_eagerly
        self._loop = DirectCall(graph_function(self._stream_loop))
        self._loop_until: Any = None
        self._several: dict[tuple[str, bool], tuple[Callable[..., Row], Sequence[Any], Callable[[], Row]]] = {}

    def check(self, batch: Row) -> None:
        """Check the labels of a batch; in eager mode losses check them themselves."""
        if not self._eager:
            if self._labels.rules_of(batch) is None:
                self.step.get_concrete_function(*batch)
            self._labels.check(batch)

    def traced(self, spec: Any) -> Callable[..., Row]:
        """Return the step, traced for batches of a spec, as the loop over an iterator calls it."""
        return self.step.get_concrete_function(*spec)  # type: ignore[no-any-return]

    def _ensure_rules(self, batch: Row) -> None:
        """Trace the step if it has not been traced, which notes the rules for labels."""
        if self._labels.rules_of(batch) is None:
            self.step.get_concrete_function(*batch)

    def several(self, batches: Sequence[Row], last: IsLast | None) -> tuple[Row, Callable[[], None]]:
        """Run a step on each of several batches, as `CompiledSteps.run_batches` says."""
        if isinstance(batches, Stacked):
            columns = batches.columns
        else:
            columns = tf.nest.map_structure(lambda *values: tf.stack(values), *batches)
        refuse_empty(columns, stacked=True)
        self._ensure_rules(tf.nest.map_structure(lambda column: column[0], columns))
        self._labels.check(columns, stacked=True)
        specs = tf.nest.map_structure(lambda value: tf.TensorSpec((None, *value.shape[1:]), value.dtype), columns)
        key = str(specs), last is not None
        if key not in self._several:
            compiled: Any = graph_function(functools.partial(self._stacked_loop, last))
            run = compiled.get_concrete_function(*specs)
            # Values share their memory until the next step writes them.
            reader = DirectCall(graph_function(lambda: tuple(variable.read_value() for variable in run.variables)))
            self._several[key] = run, run.variables, reader
        run, variables, read = self._several[key]
        saved = read()
        try:
            return run(*tf.nest.flatten(columns)), functools.partial(_assign, variables, saved)
        except BaseException:  # Ctrl-C too: no callback has seen these steps.
            _assign(variables, saved)
            raise

    # ---- compiled calls ---------------------------------------------------------------------------------------
    def _single_step(self, *batch: Tree) -> Row:
        return once(lambda: self.step(*batch))

    def _stream(self, iterator: Any, count: int) -> Row:
        with _raise_refusals():
            return self._loop.of_iterator(iterator, tf.constant(count))  # type: ignore[no-any-return]

    def _stream_until(self, iterator: Any, count: int, last: IsLast) -> tuple[Row, Row]:
        if self._loop_until is None:
            # Not an argument: each method object would be retraced.
            self._loop_until = graph_function(functools.partial(self._stream_loop_until, last))
        with _raise_refusals():
            return self._loop_until(iterator, tf.constant(count))  # type: ignore[no-any-return]

    def _stream_loop(self, iterator: Any, count: Any) -> Row:
        return repeated(lambda index: self._checked_step(index, next(iterator)), count)

    def _stream_loop_until(self, last: IsLast, iterator: Any, count: Any) -> tuple[Row, Row]:
        def step(index: Any) -> tuple[Row, Row, Row]:
            batch = next(iterator)
            results = self._checked_step(index, batch)
            return results, batch, (last(results),)

        return repeated_until(step, count)

    def _checked_step(self, index: Any, batch: Row) -> Row:
        self._ensure_rules(batch)
        rules = self._labels.rules_of(batch) or ()
        assertions = [*row_assertions(batch, index), *label_assertions(rules, batch, index)]
        if assertions:
            # The batch waits for them, not the call of the step: weights are read meanwhile.
            with tf.control_dependencies(assertions):
                batch = tf.nest.map_structure(tf.identity, batch, expand_composites=True)
        return self.step(*batch)  # type: ignore[no-any-return]

    def _step_eagerly(self, index: int, batch: Row) -> Row:
        try:
            refuse_empty(batch)
            return self.step(*batch)  # type: ignore[no-any-return]
        except RefusedBatch as error:
            error.index = index
            raise

    def _stream_eagerly(self, iterator: Any, count: int) -> Row:
        return self._stream_until_eagerly(iterator, count, lambda results: False)[0]

    def _stream_until_eagerly(self, iterator: Any, count: int, last: IsLast) -> tuple[Row, Row]:
        rows: list[Row] = []
        while len(rows) < count and not (rows and bool(last(rows[-1]))):
            batch = next(iterator)
            rows.append(self._step_eagerly(len(rows), batch))
        return tuple(tf.stack(column) for column in zip(*rows, strict=True)), batch

    def _stacked_loop(self, last: IsLast | None, *columns: Any) -> Row:
        count = tf.shape(tf.nest.flatten(columns)[0])[0]

        def step(index: Any) -> tuple[Row, Row, Row]:
            results = self.step(*tf.nest.map_structure(lambda column: column[index], columns))
            return results, (), () if last is None else (last(results),)

        return repeated_until(step, count)[0]


@contextlib.contextmanager
def _raise_refusals() -> Iterator[None]:
    """Raise an error of the assertions about batches in a graph as a `RefusedBatch`."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        refusal = read_refusal(error)
        if refusal is None:
            raise
        raise refusal from None


def _assign(variables: Sequence[Variable], values: Sequence[Tensor]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
