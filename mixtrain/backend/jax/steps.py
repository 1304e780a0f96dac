"""A step compiled once, and run on a batch a call, on several batches given together, or on those of an iterator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import keras
import numpy as np

from mixtrain import context
from mixtrain.backend.class_labels import ClassLabels, LabelOutOfRange
from mixtrain.backend.info import GroupInfo, JitChoice
from mixtrain.backend.jax.compile import compile_function
from mixtrain.backend.jax.device import describe_device
from mixtrain.backend.jax.passes import DevicePut, Stacked
from mixtrain.backend.jax.state import Stateful
from mixtrain.backend.jax.variables import store, stored
from mixtrain.backend.jax.windows import with_fast_windows

Row = tuple[Any, ...]

# Each number of steps is compiled by XLA anew, which takes seconds: one number, in runs that are not short.
GROUPS: Final = GroupInfo(after=500, size=32, early=True)
# Fewer run one by one.
_MIN_GROUP: Final = 4
# The bounds of a loop of a single step.
_ONE: Final = np.array([0, 1], np.int32)


class CompiledSteps:
    """One step of training in its three ways of being called.

    Args:
        function: Takes the columns of a batch, tensors, and returns a tuple of tensors of fixed shapes; it writes
            variables by `assign`.
        choice: How the step is compiled, for the log.

    Attributes:
        sizes: Of each batch of the last call of `streamed` how many rows it had, int (n,); None where the function must
            tell, because it may be compiled for batches of any size.

    Example:
        >>> steps = CompiledSteps(lambda x: (2 * x,), choice=JitChoice(True, "an example"))
        >>> (rows,) = steps.several([(jnp.array([x]),) for x in (1.0, 2.0, 3.0)])
        >>> steps.one(jnp.array([4.0]))[0].tolist(), rows.ravel().tolist()
        ([8.0], [2.0, 4.0, 6.0])
    """

    def __init__(self, function: Callable[..., Row], *, choice: JitChoice) -> None:
        self._labels = function if isinstance(function, ClassLabels) else ClassLabels(function)
        self._function = compile_function(self._labels, choice=choice)
        self._eager = not context.graph_mode()
        self._on_cpu = describe_device().kind == "CPU"
        loop = _counted_loop if self._on_cpu else _loop
        self._one = Stateful(self._labels, wrap=functools.partial(_once, loop))
        self._many = Stateful(self._labels, wrap=loop)
        self._until: Stateful | None = None
        self._put_rows, self._put_batch = DevicePut(), DevicePut()
        # Forms of stacked batches for which it is known which variables a step writes.
        self._known: set[str] = set()
        self.sizes: np.ndarray | None = None

    def one(self, *batch: Any) -> Row:
        """Run the step on a batch; return its results.

        Raises:
            LabelOutOfRange: A label is no class number; nothing has run.
        """
        if self._eager:
            return self._function(*batch)  # type: ignore[no-any-return]
        if self._labels.rules_of(batch) is None:
            self._one.values_before(_ONE, *batch)
        self._labels.check(batch)
        return self._one(_ONE, *batch)  # type: ignore[no-any-return]

    def streamed(self, iterator: Any, count: int) -> Row:
        """Run `count` steps on batches that are read from a backend's iterator.

        Returns:
            The results of the steps, stacked on a new first axis of length `count`.

        Raises:
            LabelOutOfRange: A label is no class number; the steps before its batch have run.
        """
        parts: list[Row] = []
        sizes: list[int] = []
        while len(sizes) < count:
            columns, first, given = iterator.chunk(count - len(sizes))
            try:
                run = self._run_singly if self._eager else self._run_together
                rows = run(columns, first, first + given)
            except LabelOutOfRange as error:
                error.index += len(sizes)
                raise
            iterator.use(_rows_of(rows))
            parts.append(rows)
            sizes += [_size_of(columns)] * _rows_of(rows)
        self.sizes = np.array(sizes)
        return self._joined_at_once(parts) if self._on_cpu else _joined(parts)

    def streamed_until(self, iterator: Any, count: int, last: Callable[[Row], Any]) -> tuple[Row, Row]:
        """Run steps as `streamed` does, but none after one that is the last; the first call of all runs a single one.

        Args:
            iterator: The backend's iterator.
            count: How many at most.
            last: Takes the results of a step, returns a bool scalar tensor: whether it is the last. Always the same
                function.

        Returns:
            The results of the steps that ran, stacked; and the batch of the last of them.

        Raises:
            LabelOutOfRange: As `streamed`.
        """
        parts: list[Row] = []
        sizes: list[int] = []
        while len(sizes) < count:
            columns, first, given = iterator.chunk(count - len(sizes))
            try:
                run = self._run_until_eagerly if self._eager else self._run_until
                rows, is_last = run(columns, first, first + given, last)
            except LabelOutOfRange as error:
                error.index += len(sizes)
                raise
            ran = _rows_of(rows)
            iterator.use(ran)
            parts.append(rows)
            sizes += [_size_of(columns)] * ran
            if is_last:
                break
        self.sizes = np.array(sizes)
        results, ended = self._joined_at_once(parts), first + ran - 1
        if not self._on_cpu:
            return results, _at(columns, ended)
        # An operation for each column takes longer than a copy of it.
        found, form = jax.tree.flatten(columns)
        batch = self._put_batch(tuple(np.asarray(column)[ended] for column in found))
        return results, jax.tree.unflatten(form, batch)

    def several(self, batches: Sequence[Row]) -> Row:
        """Run a step on each of several batches; return the results alone of `several_undoable`."""
        return self.several_undoable(batches)[0]

    def several_undoable(
        self, batches: Sequence[Row], last: Callable[[Row], Any] | None = None
    ) -> tuple[Row, Callable[[], None]]:
        """Run a step on each of several batches.

        Args:
            batches: Batches of the same structure, shapes and dtypes; at least one.
            last: Tells a step after which none is run, as for `streamed_until`.

        Returns:
            The results of the steps that ran, stacked on a new first axis; and what puts all variables back.

        Raises:
            LabelOutOfRange: A label is no class number; nothing has run.
            Exception: What a step raised; all variables are as they were.
        """
        if isinstance(batches, Stacked):
            columns, first = batches.columns, batches.first
        else:
            columns, first = _stacked(batches, self._on_cpu), 0
        end = first + len(batches)
        before = self._values_before(columns)
        self._labels.check(_part(columns, first, end), stacked=True)
        try:
            return _joined(list(self._in_groups(columns, first, end, last))), functools.partial(_put_back, before)
        except BaseException:  # Ctrl-C too: nobody has been told of these steps.
            _put_back(before)
            raise

    def _values_before(self, columns: Row) -> list[tuple[keras.Variable, Any]]:
        """Return each variable that a step on one of stacked batches writes, with its value."""
        form = str(jax.tree.map(lambda column: (column.shape[1:], column.dtype), columns))
        if form not in self._known:
            self._known.add(form)
            return self._one.values_before(_ONE, *_at(columns, 0))
        return [(variable, stored(variable)) for variable in self._one.written]

    def _in_groups(self, columns: Row, first: int, end: int, last: Callable[[Row], Any] | None) -> Iterator[Row]:
        """Run steps on some of stacked batches in groups of the size that is compiled.

        On a CPU those left over run in a group too, else one by one. The values of before are held, so they are not
        given away: to copy them would cost more.
        """
        size = GROUPS.size or 1
        if not (self._on_cpu and _rows_of(columns) == size and end - first >= _MIN_GROUP):
            columns, first, end = _part(columns, first, end), 0, end - first
        for start in range(first, end, size):
            stop = min(start + size, end)
            if stop - start == size:
                found = self._group(_part(columns, start, stop), 0, size, last)
            elif _rows_of(columns) == size:
                found = self._group(columns, start, stop, last)
            elif self._on_cpu and stop - start >= _MIN_GROUP:
                # The loop ends where it is told to, before rows that only fill it up.
                group = jax.tree.map(lambda column, start=start: _filled_up(column, start, size), columns)
                found = self._group(group, 0, stop - start, last)
            else:
                found = self._run_singly(columns, start, stop, last), False
            rows, is_last = found
            yield rows
            if is_last:
                return

    def _group(
        self, columns: Row, first: int, end: int, last: Callable[[Row], Any] | None
    ) -> tuple[Row, bool]:
        """Run steps on some of as many stacked batches as a group has; return their results, and if one was the last.
        """
        if last is not None:
            return self._run_until(columns, first, end, last, keep=True)
        return _results(self._many.keeping(_bounds(first, end), *columns), first, end), False

    def traces(self) -> int:
        """Return how often the step was traced for batches of one form."""
        return max(self._one.traces, self._many.traces)

    def _run_together(self, columns: Row, first: int, end: int) -> Row:
        """Run steps on some of stacked batches; before one with a label that is no class number, and no further."""
        end = self._checked(self._many, columns, first, end)
        if not self._on_cpu:  # There the loop runs all rows.
            columns, first, end = _part(columns, first, end), 0, end - first
        return _results(self._many(_bounds(first, end), *columns), first, end)

    def _checked(self, run: Stateful, columns: Row, first: int, end: int) -> int:
        """Look at the labels of some of stacked batches; return where the steps end that may run.

        Raises:
            LabelOutOfRange: The first of them has one that is no class number.
        """
        if self._labels.rules_of(columns) is None:
            run.values_before(_bounds(first, end), *columns)
        try:
            self._labels.check(columns, stacked=True)
        except LabelOutOfRange as error:
            if error.index < end:
                error.index -= first
                if error.index == 0:
                    raise
                return first + error.index
        return end

    def _run_until(
        self, columns: Row, first: int, end: int, last: Callable[[Row], Any], *, keep: bool = False
    ) -> tuple[Row, bool]:
        """Run steps on some of stacked batches until one that is the last; return their results, and if one was."""
        if self._until is None:
            self._until = Stateful(self._labels, wrap=functools.partial(_loop_until, last, self._on_cpu))
        end = self._checked(self._until, columns, first, end)
        run = self._until.keeping if keep else self._until
        rows, ended, is_last = run(_bounds(first, end), *columns)
        end = int(ended)
        whole = first == 0 and end == _rows_of(columns)
        # Results that are there: cut out by JAX, each length would be compiled.
        part = rows if whole else self._put_rows(tuple(np.asarray(row)[first:end] for row in rows))
        return part, bool(is_last)

    def _joined_at_once(self, parts: Sequence[Row]) -> Row:
        """Wait for results, and join them: JAX would compile that for each number of steps before one that is the last.
        """
        if len(parts) == 1:
            return parts[0]
        return self._put_rows(tuple(np.concatenate([*map(np.asarray, rows)]) for rows in zip(*parts, strict=True)))

    def _run_until_eagerly(self, columns: Row, first: int, end: int, last: Callable[[Row], Any]) -> tuple[Row, bool]:
        rows = self._run_singly(columns, first, end, last)
        return rows, bool(last(_at(rows, -1)))

    def _run_singly(self, columns: Row, first: int, end: int, last: Callable[[Row], Any] | None = None) -> Row:
        rows: list[Row] = []
        for index in range(first, end):
            rows.append(self.one(*_at(columns, index)))
            if last is not None and last(rows[-1]):
                break
        return tuple(map(jnp.stack, zip(*rows, strict=True)))


# ---- what is compiled -----------------------------------------------------------------------------------------
def _loop(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure step as a loop of it over the first axis of its tensors."""

    def run(kept: list[Any], moved: list[Any], bounds: Any, *columns: Any) -> Any:
        del bounds
        once, _ = _traced(step, kept, moved, columns)
        if _rows_of(columns) == 1:  # A device whose kernels are started by the host is best without a loop.
            moved, results = once(moved, _at(columns, 0))
            return moved, jax.tree.map(lambda value: value[None], results)
        return jax.lax.scan(once, moved, columns)

    return run


def _counted_loop(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure step as a loop over some rows of its tensors.

    How many, XLA does not know, so that it stays a loop for a single one.
    On CPU the last bit of a step's numbers depends on whether it is compiled as the body of a loop. As the body of this
    one it has the same numbers in every call. (A GPU would ask the host before each round of such a loop.)
    """

    def run(kept: list[Any], moved: list[Any], bounds: Any, *columns: Any) -> Any:
        round_of, found = _rounds(with_fast_windows(step), kept, moved, columns)
        return jax.lax.fori_loop(*bounds, lambda index, state: round_of(index, *state)[:2], (moved, found))

    return run


def _loop_until(last: Callable[[Row], Any], on_cpu: bool, step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure step as a loop over some of the rows of its tensors that ends after a step that is the last."""

    def run(kept: list[Any], moved: list[Any], bounds: Any, *columns: Any) -> Any:
        first, end = bounds
        round_of, found = _rounds(with_fast_windows(step) if on_cpu else step, kept, moved, columns)

        def going_on(state: Any) -> Any:
            index, is_last, *_ = state
            return jnp.logical_and(index < end, jnp.logical_not(is_last))

        def body(state: Any) -> Any:
            index, _, values, found = state
            values, found, results = round_of(index, values, found)
            return index + 1, jnp.reshape(last(results), ()).astype(bool), values, found

        ended, is_last, moved, found = jax.lax.while_loop(going_on, body, (first, jnp.array(False), moved, found))
        return moved, (found, ended, is_last)

    return run


def _rounds(step: Callable[..., Any], kept: list[Any], moved: list[Any], columns: Row) -> tuple[Any, Any]:
    """Trace a pure step for the body of a loop over the first axis of its tensors.

    Returns:
        ``(round_of, found)``: a function ``(index, moved, found) -> (moved, found, results)``, and what `found`, the
        results stacked, is before the first round.
    """
    once, shapes = _traced(step, kept, moved, columns)

    def round_of(index: Any, values: Any, found: Any) -> tuple[Any, Any, Any]:
        values, results = once(values, _at(columns, index))
        return values, jax.tree.map(lambda rows, result: rows.at[index].set(result), found, results), results

    return round_of, jax.tree.map(lambda of: jnp.zeros((_rows_of(columns), *of.shape), of.dtype), shapes)


def _traced(step: Callable[..., Any], kept: list[Any], moved: list[Any], columns: Row) -> tuple[Any, Any]:
    """Trace a pure step by itself, so that all that it is given may decide branches of it, what it only reads too.

    Returns:
        ``(once, shapes)``: a function ``(moved, row) -> (moved, results)``, and the forms of the results.
    """
    program, shapes = jax.make_jaxpr(step, return_shape=True)(kept, moved, *_at(columns, 0))
    form = jax.tree.structure(shapes)

    def once(values: Any, row: Row) -> Any:
        given = jax.tree.leaves((kept, values, row))
        return jax.tree.unflatten(form, jax.core.eval_jaxpr(program.jaxpr, program.consts, *given))

    return once, shapes[1]


def _once(loop: Callable[..., Any], step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure step as a loop of one round."""
    several = loop(step)

    def run(kept: list[Any], moved: list[Any], bounds: Any, *row: Any) -> Any:
        moved, rows = several(kept, moved, bounds, *jax.tree.map(lambda value: jnp.asarray(value)[None], row))
        return moved, jax.tree.map(lambda value: value[0], rows)

    return run


# ---- batches, stacked -----------------------------------------------------------------------------------------
def _at(columns: Row, index: Any) -> Row:
    return jax.tree.map(lambda column: column[index], columns)  # type: ignore[no-any-return]


def _stacked(batches: Sequence[Row], on_cpu: bool) -> Row:
    """Stack batches: compiled for the size of a group, for that would else be an operation for each tensor."""
    if len(batches) == GROUPS.size:
        return _stacked_together(list(batches))  # type: ignore[no-any-return]
    stack = np.stack if on_cpu else jnp.stack
    return jax.tree.map(lambda *values: stack(values), *batches)  # type: ignore[no-any-return]


@jax.jit
def _stacked_together(batches: list[Row]) -> Row:
    return jax.tree.map(lambda *values: jnp.stack(values), *batches)  # type: ignore[no-any-return]


def _results(rows: Row, first: int, end: int) -> Row:
    """Return some of stacked results, without waiting for them."""
    whole = end - first == _rows_of(rows)
    return rows if whole else _cut(rows, np.int32(first), end - first)  # type: ignore[no-any-return]


@functools.partial(jax.jit, static_argnums=2)
def _cut(rows: Row, first: Any, count: int) -> Row:
    """Return as many rows from one on; compiled for each number, of which a run has few."""
    cut = functools.partial(jax.lax.dynamic_slice_in_dim, start_index=first, slice_size=count)
    return jax.tree.map(cut, rows)  # type: ignore[no-any-return]


def _part(columns: Row, first: int, end: int) -> Row:
    """Return some of stacked batches, the columns themselves where it is all of them."""
    if end - first == _rows_of(columns):
        return columns
    if describe_device().kind == "CPU":  # Nothing is copied.
        return _at(jax.tree.map(np.asarray, columns), slice(first, end))
    return _cut(columns, np.int32(first), end - first)  # type: ignore[no-any-return]


def _filled_up(column: Any, start: int, size: int) -> np.ndarray:
    """Return the rows of an array from one on, and as many more as make up a size; what those hold is not read."""
    rows = np.asarray(column)[start:]
    found = np.empty((size, *rows.shape[1:]), rows.dtype)
    found[: len(rows)] = rows
    return found


def _rows_of(columns: Row) -> int:
    return int(jax.tree.leaves(columns)[0].shape[0])


def _size_of(columns: Row) -> int:
    """Return how many rows each of stacked batches has; 1 where they have none."""
    return int((*jax.tree.leaves(columns)[0].shape, 1)[1])


def _bounds(first: int, end: int) -> np.ndarray:
    """Return the first row that a loop runs, and the one that it ends before."""
    return np.array([first, end], np.int32)


def _joined(parts: Sequence[Row]) -> Row:
    return parts[0] if len(parts) == 1 else tuple(map(jnp.concatenate, zip(*parts, strict=True)))


def _put_back(before: Sequence[tuple[keras.Variable, Any]]) -> None:
    """Give variables the values that they had."""
    for variable, value in before:
        store(variable, value)
