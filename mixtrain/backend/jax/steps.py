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
from mixtrain.backend.facts import GroupFacts, JitChoice
from mixtrain.backend.jax.compile import compile_function
from mixtrain.backend.jax.device import describe_device
from mixtrain.backend.jax.passes import Stacked
from mixtrain.backend.jax.state import Stateful
from mixtrain.backend.jax.variables import store
from mixtrain.backend.jax.windows import with_fast_windows

Row = tuple[Any, ...]

# Each number of steps is compiled by XLA anew, which takes seconds: one number, in runs that are not short.
GROUPS: Final = GroupFacts(after=500, size=32, early=True)


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
        loop = _counted_loop if describe_device().kind == "CPU" else _loop
        self._one = Stateful(self._labels, wrap=functools.partial(_once, loop))
        self._many = Stateful(self._labels, wrap=loop)
        self.sizes: np.ndarray | None = None

    def one(self, *batch: Any) -> Row:
        """Run the step on a batch; return its results.

        Raises:
            LabelOutOfRange: A label is no class number; nothing has run.
        """
        if self._eager:
            return self._function(*batch)  # type: ignore[no-any-return]
        if self._labels.rules_of(batch) is None:
            self._one.values_before(np.int32(1), *batch)
        self._labels.check(batch)
        return self._one(np.int32(1), *batch)  # type: ignore[no-any-return]

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
            columns = iterator.take(count - len(sizes))
            try:
                parts.append(self._run_singly(columns) if self._eager else self._run_together(columns))
            except LabelOutOfRange as error:
                error.index += len(sizes)
                raise
            sizes += [_size_of(columns)] * _rows_of(columns)
        self.sizes = np.array(sizes)
        return _joined(parts)

    def several(self, batches: Sequence[Row]) -> Row:
        """Run a step on each of several batches; return the results alone of `several_undoable`."""
        return self.several_undoable(batches)[0]

    def several_undoable(self, batches: Sequence[Row]) -> tuple[Row, Callable[[], None]]:
        """Run a step on each of several batches.

        Args:
            batches: Batches of the same structure, shapes and dtypes; at least one.

        Returns:
            The results of the steps, stacked on a new first axis; and what puts all variables back.

        Raises:
            LabelOutOfRange: A label is no class number; nothing has run.
            Exception: What a step raised; all variables are as they were.
        """
        if isinstance(batches, Stacked):
            columns = batches.columns
        else:
            columns = keras.tree.map_structure(lambda *values: jnp.stack(values), *batches)
        # Held here, these arrays are not given away.
        before = self._one.values_before(np.int32(1), *_at(columns, 0))
        self._labels.check(columns, stacked=True)
        try:
            return _joined(list(self._in_groups(columns))), functools.partial(_put_back, before)
        except BaseException:  # Ctrl-C too: nobody has been told of these steps.
            _put_back(before)
            raise

    def _in_groups(self, columns: Row) -> Iterator[Row]:
        """Run the steps in groups of the size that is compiled, and those left over one by one."""
        count, size = _rows_of(columns), GROUPS.size or 1
        whole = count - count % size
        for start in range(0, whole, size):
            yield self._many(*_counted(columns if size == count else _at(columns, slice(start, start + size))))
        if whole < count:
            yield self._run_singly(_at(columns, slice(whole, count)))

    def traces(self) -> int:
        """Return how often the step was traced for batches of one form."""
        return max(self._one.traces, self._many.traces)

    def _run_together(self, columns: Row) -> Row:
        """Run a step on each of stacked batches; before one with a label that is no class number, and no further."""
        if self._labels.rules_of(columns) is None:
            self._many.values_before(*_counted(columns))
        try:
            self._labels.check(columns, stacked=True)
        except LabelOutOfRange as error:
            if error.index:
                self._run_singly(_at(columns, slice(0, error.index)))
            raise
        return self._many(*_counted(columns))  # type: ignore[no-any-return]

    def _run_singly(self, columns: Row) -> Row:
        rows = [self.one(*_at(columns, index)) for index in range(_rows_of(columns))]
        return tuple(map(jnp.stack, zip(*rows, strict=True)))


# ---- what is compiled -----------------------------------------------------------------------------------------
def _loop(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure step as a loop of it over the first axis of its tensors."""

    def run(kept: list[Any], moved: list[Any], count: Any, *columns: Any) -> Any:
        del count
        return jax.lax.scan(lambda values, row: step(kept, values, *row), moved, columns)

    return run


def _counted_loop(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure step as a loop whose number of steps XLA does not know, so that it stays a loop for a single one.

    On CPU the last bit of a step's numbers depends on whether it is compiled as the body of a loop. As the body of this
    one it has the same numbers in every call. (A GPU would ask the host before each round of such a loop.)
    """

    def run(kept: list[Any], moved: list[Any], count: Any, *columns: Any) -> Any:
        program, shapes = jax.make_jaxpr(with_fast_windows(step), return_shape=True)(kept, moved, *_at(columns, 0))
        form = jax.tree.structure(shapes)
        found = jax.tree.map(lambda of: jnp.zeros((_rows_of(columns), *of.shape), of.dtype), shapes[1])

        def body(index: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
            values, found = state
            given = jax.tree.leaves((kept, values, _at(columns, index)))
            values, results = jax.tree.unflatten(form, jax.core.eval_jaxpr(program.jaxpr, program.consts, *given))
            return values, jax.tree.map(lambda rows, result: rows.at[index].set(result), found, results)

        return jax.lax.fori_loop(0, count, body, (moved, found))

    return run


def _once(loop: Callable[..., Any], step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure step as a loop of one round."""
    several = loop(step)

    def run(kept: list[Any], moved: list[Any], count: Any, *row: Any) -> Any:
        moved, rows = several(kept, moved, count, *jax.tree.map(lambda value: jnp.asarray(value)[None], row))
        return moved, jax.tree.map(lambda value: value[0], rows)

    return run


# ---- batches, stacked -----------------------------------------------------------------------------------------
def _at(columns: Row, index: Any) -> Row:
    return jax.tree.map(lambda column: column[index], columns)  # type: ignore[no-any-return]


def _rows_of(columns: Row) -> int:
    return int(jax.tree.leaves(columns)[0].shape[0])


def _size_of(columns: Row) -> int:
    """Return how many rows each of stacked batches has; 1 where they have none."""
    return int((*jax.tree.leaves(columns)[0].shape, 1)[1])


def _counted(columns: Row) -> Row:
    return (np.int32(_rows_of(columns)), *columns)


def _joined(parts: Sequence[Row]) -> Row:
    return parts[0] if len(parts) == 1 else tuple(map(jnp.concatenate, zip(*parts, strict=True)))


def _put_back(before: Sequence[tuple[keras.Variable, Any]]) -> None:
    """Give variables the values that they had."""
    for variable, value in before:
        store(variable, value)
