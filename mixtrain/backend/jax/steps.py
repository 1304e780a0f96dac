"""A compiled training step that runs on one batch, on several batches in one call, or on the batches of an iterator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import keras
import numpy as np

from mixtrain import execution
from mixtrain.backend.class_labels import ClassLabels, LabelOutOfRange
from mixtrain.backend.info import GroupInfo, JitChoice
from mixtrain.backend.jax.compile import compile_function
from mixtrain.backend.jax.device import describe_device
from mixtrain.backend.jax.elements import DevicePut, Stacked
from mixtrain.backend.jax.rewrite import run_rewritten
from mixtrain.backend.jax.state import Stateful
from mixtrain.backend.jax.tensor import store, stored
from mixtrain.backend.jax.windows import fast_forms
from mixtrain.backend.refused_batch import RefusedBatch, refuse_empty
from mixtrain.backend.signatures import IsLast, Row
from mixtrain.typing import Tensor, Tree

# XLA recompiles for each number of steps, which takes seconds: one number only, and only in runs that are not short.
GROUPS: Final = GroupInfo(after=500, size=32, early=True)
# Fewer steps run one by one.
_MIN_GROUP: Final = 4
# The bounds of a loop over a single step.
_ONE_STEP: Final = np.array([0, 1], np.int32)


class CompiledSteps:
    def __init__(self, function: Callable[..., Row], *, choice: JitChoice, labels: ClassLabels | None = None) -> None:
        self._labels = labels or ClassLabels(())
        self._step = function
        self._function = compile_function(function, choice=choice)
        self._eager = not execution.current.graph_mode
        self._on_cpu = describe_device().kind == "CPU"
        loop = functools.partial(_loop, on_cpu=self._on_cpu)
        self._one = Stateful(function, wrap=functools.partial(loop, single=True))
        self._many = Stateful(function, wrap=loop)
        self._until: Stateful | None = None
        self._put_rows, self._put_batch = DevicePut(), DevicePut()
        # Shapes and dtypes of batches for which the variables that a step writes are known.
        self._known_specs: set[str] = set()
        self.sizes: np.ndarray | None = None

    def run(self, *batch: Tree) -> Row:
        if self._eager:
            return self._function(*batch)  # type: ignore[no-any-return]
        if self._labels.rules_of(batch) is None:
            self._one.values_before(_ONE_STEP, *batch)
        self._labels.check(batch)
        return self._one(_ONE_STEP, *batch)  # type: ignore[no-any-return]

    def run_stream(self, iterator: Any, count: int) -> Row:
        parts, _, _ = self._run_chunks(iterator, count, None)
        return self._concatenate_on_host(parts) if self._on_cpu else _concatenate(parts)

    def run_stream_until(self, iterator: Any, count: int, last: IsLast) -> tuple[Row, Row]:
        parts, columns, index = self._run_chunks(iterator, count, last)
        results = self._concatenate_on_host(parts)
        if not self._on_cpu:
            return results, _row_at(columns, index)
        # On CPU a copy of each column takes less time than a JAX operation on it.
        leaves, treedef = jax.tree.flatten(columns)
        batch = self._put_batch(tuple(np.asarray(column)[index] for column in leaves))
        return results, jax.tree.unflatten(treedef, batch)

    def run_batches(self, batches: Sequence[Row], last: IsLast | None = None) -> tuple[Row, Callable[[], None]]:
        if isinstance(batches, Stacked):
            columns, first = batches.columns, batches.first
        else:
            columns, first = _stack(batches, self._on_cpu), 0
        end = first + len(batches)
        refuse_empty(columns, stacked=True)
        saved = self._saved_values(columns)
        self._labels.check(_slice_rows(columns, first, end), stacked=True)
        try:
            return _concatenate(list(self._in_groups(columns, first, end, last))), functools.partial(_restore, saved)
        except BaseException:  # Ctrl-C too: no callback has seen these steps.
            _restore(saved)
            raise

    def _saved_values(self, columns: Row) -> list[tuple[keras.Variable, Tensor]]:
        """Return each variable that a step on one of the stacked batches writes, with its value."""
        spec = str(jax.tree.map(lambda column: (column.shape[1:], column.dtype), columns))
        if spec not in self._known_specs:
            self._known_specs.add(spec)
            return self._one.values_before(_ONE_STEP, *_row_at(columns, 0))
        return [(variable, stored(variable)) for variable in self._one.written]

    def _in_groups(self, columns: Row, first: int, end: int, last: IsLast | None) -> Iterator[Row]:
        """Run steps on stacked batches in groups of the compiled size.

        On a CPU the remaining ones run in a group too, elsewhere one by one. Nothing is donated: the caller holds the
        old values, and a copy of them would cost more.
        """
        size = GROUPS.size or 1
        if not (self._on_cpu and _num_rows(columns) == size and end - first >= _MIN_GROUP):
            columns, first, end = _slice_rows(columns, first, end), 0, end - first
        for start in range(first, end, size):
            stop = min(start + size, end)
            if stop - start == size:
                rows, is_last = self._run_group(_slice_rows(columns, start, stop), 0, size, last)
            elif _num_rows(columns) == size:
                rows, is_last = self._run_group(columns, start, stop, last)
            elif self._on_cpu and stop - start >= _MIN_GROUP:
                # The loop stops before the rows that only pad the group.
                padded = jax.tree.map(lambda column, start=start: _padded(column, start, size), columns)
                rows, is_last = self._run_group(padded, 0, stop - start, last)
            else:
                rows, is_last = self._run_one_by_one(columns, start, stop, last), False
            yield rows
            if is_last:
                return

    def _run_group(self, columns: Row, first: int, end: int, last: IsLast | None) -> tuple[Row, bool]:
        """Run steps on some rows of a whole group; return their results and whether one was the last."""
        if last is not None:
            return self._run_until(columns, first, end, last, keep=True)
        return _slice_results(self._many(_bounds(first, end), *columns, donate=False), first, end), False

    def traces(self) -> int:
        return max(self._one.traces, self._many.traces)

    def _run_chunks(self, iterator: Any, count: int, last: IsLast | None) -> tuple[list[Row], Row, int]:
        """Run steps on the batches of an iterator, chunk by chunk, and set `sizes`.

        Returns: The results of each chunk, the last chunk, and the row of the last step's batch in it.
        """
        parts: list[Row] = []
        sizes: list[int] = []
        is_last = False
        while len(sizes) < count and not is_last:
            columns, first, available = iterator.peek_chunk(count - len(sizes))
            try:
                rows, is_last = self._run_chunk(columns, first, first + available, last)
            except RefusedBatch as error:
                error.index += len(sizes)
                raise
            num_steps = _num_rows(rows)
            iterator.consume(num_steps)
            parts.append(rows)
            batch_size = (*jax.tree.leaves(columns)[0].shape, 1)[1]  # 1 for scalars, which have no rows.
            sizes += [int(batch_size)] * num_steps
        self.sizes = np.array(sizes)
        return parts, columns, first + num_steps - 1

    def _run_chunk(self, columns: Row, first: int, end: int, last: IsLast | None) -> tuple[Row, bool]:
        """Run steps on stacked batches, up to the last step or the first batch that has a label out of range."""
        refuse_empty(columns, stacked=True)
        if self._eager:
            rows = self._run_one_by_one(columns, first, end, last)
            return rows, last is not None and bool(last(_row_at(rows, -1)))
        if last is not None:
            return self._run_until(columns, first, end, last)
        end = self._valid_end(self._many, columns, first, end)
        if not self._on_cpu:  # The loop of other devices runs all rows.
            columns, first, end = _slice_rows(columns, first, end), 0, end - first
        return _slice_results(self._many(_bounds(first, end), *columns), first, end), False

    def _valid_end(self, run: Stateful, columns: Row, first: int, end: int) -> int:
        """Check the labels of stacked batches; return the end of the rows that may run.

        Raises: LabelOutOfRange if the first of them has a label out of range.
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

    def _run_until(self, columns: Row, first: int, end: int, last: IsLast, *, keep: bool = False) -> tuple[Row, bool]:
        """Run steps on stacked batches until one is the last; return their results and whether one was."""
        if self._until is None:
            self._until = Stateful(self._step, wrap=functools.partial(_while_loop, last))
        end = self._valid_end(self._until, columns, first, end)
        rows, stop, is_last = self._until(_bounds(first, end), *columns, donate=not keep)
        end = int(stop)
        if first > 0 or end < _num_rows(columns):
            # Sliced by NumPy, since the results are computed: JAX would compile a slice for each length.
            rows = self._put_rows(tuple(np.asarray(row)[first:end] for row in rows))
        return rows, bool(is_last)

    def _concatenate_on_host(self, parts: Sequence[Row]) -> Row:
        """Concatenate results by NumPy: JAX would compile it for each number of steps before the last one."""
        if len(parts) == 1:
            return parts[0]
        return self._put_rows(tuple(np.concatenate([*map(np.asarray, rows)]) for rows in zip(*parts, strict=True)))

    def _run_one_by_one(self, columns: Row, first: int, end: int, last: IsLast | None = None) -> Row:
        rows: list[Row] = []
        for index in range(first, end):
            rows.append(self.run(*_row_at(columns, index)))
            if last is not None and last(rows[-1]):
                break
        return tuple(map(jnp.stack, zip(*rows, strict=True)))


# ---- compiled loops -------------------------------------------------------------------------------------------
def _loop(step: Callable[..., Any], *, on_cpu: bool, single: bool = False) -> Callable[..., Any]:
    """Return a pure step as a loop over some rows of its tensors; a `single` one takes and returns a row.

    On CPU the last bit of a step's results depends on whether it is compiled as the body of a loop. XLA does not know
    the number of rows of a `lax.fori_loop`, so a single one stays a loop too, with the same results in every call. A
    GPU would ask the host before each of its iterations, so there the loop is a `lax.scan` over all rows.
    """

    def run(constants: list[Tensor], state: list[Tensor], bounds: Any, *columns: Any) -> Any:
        if single:
            columns = jax.tree.map(lambda value: jnp.asarray(value)[None], columns)
        run_row, shapes = _trace_step(step, constants, state, columns)
        if on_cpu:
            run_step, stacked = _collecting(run_row, shapes, columns)
            state, rows = jax.lax.fori_loop(*bounds, lambda index, carry: run_step(index, *carry)[:2], (state, stacked))
        elif _num_rows(columns) == 1:  # Faster without a loop where the host launches the kernels.
            state, results = run_row(state, _row_at(columns, 0))
            rows = jax.tree.map(lambda value: value[None], results)
        else:
            state, rows = jax.lax.scan(run_row, state, columns)
        return state, jax.tree.map(lambda value: value[0], rows) if single else rows

    return run


def _while_loop(last: IsLast, step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure step as a `lax.while_loop` over some rows of its tensors, which ends after the last step."""

    def run(constants: list[Tensor], state: list[Tensor], bounds: Any, *columns: Any) -> Any:
        first, end = bounds
        run_step, stacked = _collecting(*_trace_step(step, constants, state, columns), columns)

        def cond(carry: Any) -> Any:
            index, is_last, *_ = carry
            return jnp.logical_and(index < end, jnp.logical_not(is_last))

        def body(carry: Any) -> Any:
            index, _, state, stacked = carry
            state, stacked, results = run_step(index, state, stacked)
            return index + 1, jnp.reshape(last(results), ()).astype(bool), state, stacked

        stop, is_last, state, stacked = jax.lax.while_loop(cond, body, (first, jnp.array(False), state, stacked))
        return state, (stacked, stop, is_last)

    return run


def _collecting(run_row: Callable[..., Any], shapes: Any, columns: Row) -> tuple[Any, Any]:
    """Return the body of a loop over the first axis of tensors, from what `_trace_step` returns for them.

    Returns: ``(run_step, stacked)``: a function ``(index, state, stacked) -> (state, stacked, results)``, and the
    initial value of `stacked`, which collects the results.
    """

    def run_step(index: Any, state: Any, stacked: Any) -> tuple[Any, Any, Any]:
        state, results = run_row(state, _row_at(columns, index))
        return state, jax.tree.map(lambda rows, result: rows.at[index].set(result), stacked, results), results

    return run_step, jax.tree.map(lambda spec: jnp.zeros((_num_rows(columns), *spec.shape), spec.dtype), shapes)


def _trace_step(
    step: Callable[..., Any], constants: list[Tensor], state: list[Tensor], columns: Row
) -> tuple[Any, Any]:
    """Trace a pure step by itself, so that all its arguments may decide branches in it, constants too.

    Returns: ``(run_row, shapes)``: a function ``(state, row) -> (state, results)``, and the specs of the results.
    """
    program, shapes = jax.make_jaxpr(step, return_shape=True)(constants, state, *_row_at(columns, 0))
    treedef = jax.tree.structure(shapes)

    def run_row(state: Any, row: Row) -> Any:
        leaves = jax.tree.leaves((constants, state, row))
        return jax.tree.unflatten(treedef, run_rewritten(program, leaves, fast_forms()))

    return run_row, shapes[1]


# ---- stacked batches ------------------------------------------------------------------------------------------
def _row_at(columns: Row, index: Any) -> Row:
    return jax.tree.map(lambda column: column[index], columns)  # type: ignore[no-any-return]


def _stack(batches: Sequence[Row], on_cpu: bool) -> Row:
    """Stack batches, compiled for a whole group: it would otherwise be one operation per tensor."""
    if len(batches) == GROUPS.size:
        return _stack_compiled(list(batches))  # type: ignore[no-any-return]
    stack = np.stack if on_cpu else jnp.stack
    return jax.tree.map(lambda *values: stack(values), *batches)  # type: ignore[no-any-return]


@jax.jit
def _stack_compiled(batches: list[Row]) -> Row:
    return jax.tree.map(lambda *values: jnp.stack(values), *batches)  # type: ignore[no-any-return]


def _slice_results(rows: Row, first: int, end: int) -> Row:
    """Return some rows of stacked results, without waiting for them."""
    all_rows = end - first == _num_rows(rows)
    return rows if all_rows else _slice_compiled(rows, np.int32(first), end - first)  # type: ignore[no-any-return]


@functools.partial(jax.jit, static_argnums=2)
def _slice_compiled(rows: Row, first: Any, count: int) -> Row:
    """Return `count` rows from `first` on; compiled for each count, of which a run has few."""
    slice_column = functools.partial(jax.lax.dynamic_slice_in_dim, start_index=first, slice_size=count)
    return jax.tree.map(slice_column, rows)  # type: ignore[no-any-return]


def _slice_rows(columns: Row, first: int, end: int) -> Row:
    """Return some rows of stacked batches, the columns themselves where it is all of them."""
    if end - first == _num_rows(columns):
        return columns
    if describe_device().kind == "CPU":  # Nothing is copied.
        return _row_at(jax.tree.map(np.asarray, columns), slice(first, end))
    return _slice_compiled(columns, np.int32(first), end - first)  # type: ignore[no-any-return]


def _padded(column: Any, start: int, size: int) -> np.ndarray:
    """Return the rows of an array from `start` on, padded to `size` rows with uninitialized values."""
    rows = np.asarray(column)[start:]
    padded = np.empty((size, *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    return padded


def _num_rows(columns: Row) -> int:
    return int(jax.tree.leaves(columns)[0].shape[0])


def _bounds(first: int, end: int) -> np.ndarray:
    """Return the bounds of a loop over rows."""
    return np.array([first, end], np.int32)


def _concatenate(parts: Sequence[Row]) -> Row:
    return parts[0] if len(parts) == 1 else tuple(map(jnp.concatenate, zip(*parts, strict=True)))


def _restore(saved: Sequence[tuple[keras.Variable, Tensor]]) -> None:
    for variable, value in saved:
        store(variable, value)
