"""`Stepper`: compiled calls of a train network on one batch, several batches or an iterator."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from mixtrain import backend, boundary, execution
from mixtrain.loss_scale.rule import Count
from mixtrain.step.compiled_call import CompiledCall
from mixtrain.step.train_step import NON_FINITE, Step
from mixtrain.train.later import Later
from mixtrain.train.records import StepRecords
from mixtrain.train.steps_per_call import StepsPerCall
from mixtrain.typing import Batch, Tensor, Tree

_log = logging.getLogger("mixtrain")


class CallResult(NamedTuple):
    """Result of a call of the compiled step.

    Attributes:
        records: The results of its steps.
        outputs: The network's outputs at the last step; may be a `Later`.
    """

    records: StepRecords
    outputs: Tree


@dataclasses.dataclass(frozen=True)
class StepCall:
    """A call of the compiled step that is to be made.

    Attributes:
        run: Makes it.
        steps: The number of its steps.
        batch: The batch of its last step; may be a `Later`. None where the call reads its batches itself.
        before: Called before it, or None.
    """

    run: Callable[[], CallResult]
    steps: int = 1
    batch: Any = None
    before: Callable[[], None] | None = None


@dataclasses.dataclass(frozen=True)
class Group:
    """Results of several steps that ran in one call.

    Attributes:
        records: The results of the steps.
        outputs: The network's outputs at each step.
        counts: The optimizer's count of updates after each step, stacked; None if it was not requested, or the network
            has no optimizer.
        count_before: That count before the first step, or None.
    """

    records: StepRecords
    outputs: Sequence[Tree]
    counts: Tensor | None
    count_before: Tensor | None


class Stepper:
    """Runs a train step, compiled once for all ways of feeding it.

    `step`: The step. `needs`: Names of the tensors, such as "gradients", that callbacks need of each step beside
    scalars. `prepare`: Called before each call, by `CompiledCall`.

    Attributes:
        steps_per_call: Estimates how many steps a call should run.
    """

    def __init__(self, step: Step, *, needs: Collection[str] = (), prepare: Callable[[], None] = lambda: None) -> None:
        self._step = step
        self._needs = needs
        self._training = CompiledCall(
            self._flat_step, *step.layers, choice=step.jit_choice, prepare=prepare,
            compile_function=lambda run, choice: backend.CompiledSteps(run, choice=choice, labels=self._labels),
        )
        self._labels = self._training.labels
        # The compiled call and the state variables that its trace found.
        self._state_of: tuple[Any, list[keras.Variable]] = None, []
        # Set by each trace: functions that pack the flat values that a step returns, and the rows of its batch.
        self._pack_outputs: Callable[[Sequence[Tensor]], Tree] = tuple
        self._pack_report: Callable[[Sequence[Tensor]], dict[str, Any]] = dict
        self._output_count = self._report_count = 0
        self._rows: int | None = None
        self.steps_per_call = StepsPerCall(backend.GROUPS)

    def _flat_step(self, *batch: Tree) -> tuple[Tensor, ...]:
        """Run the step; return its outputs and its report as one flat tuple of tensors."""
        outputs, report = self._step.run_with_report(*batch, needs=self._needs)
        outputs, report = boundary.to_backend_tensors((outputs, report))
        self._pack_outputs, self._pack_report = _packing(outputs), _packing(report)
        values, reported = keras.tree.flatten(outputs), keras.tree.flatten(report)
        self._output_count, self._report_count = len(values), len(reported)
        first = keras.tree.flatten(batch)[0]
        self._rows = (*first.shape, 1)[0]
        # A batch of unknown size, as of an iterator, returns its number of rows too.
        return (*values, *reported, *(() if self._rows is not None else (keras.ops.shape(first)[0],)))

    def step(self, batch: Batch) -> CallResult:
        """Train on one batch."""
        rows = backend.refuse_empty(batch)
        started = time.perf_counter()
        with backend.naming_layers("Model"):
            for attempt in self._training.attempts():
                with attempt:
                    values = backend.call_with_branches(self._training.compiled().run, *batch)
            if self.steps_per_call.waits:
                backend.wait_for(values)
        self.steps_per_call.learn(time.perf_counter() - started, 1)
        outputs, report, _ = self._unpack(values)
        return CallResult(self._records(outputs, report, np.array([rows]), _as_column), outputs)

    def several(self, batches: Sequence[Batch], *, until_overflow: bool = False, counts: bool = False) -> Group | None:
        """Train on several batches of equal shapes in one call; return None, with nothing done, if that fails.

        The caller then runs them step by step, so that an error is raised by its own step. All later steps run one per
        call too: the group may fail where none of its steps does, as when memory is short. The log says why.

        `batches`: The batches. `until_overflow`: Whether to stop after a step that overflows. `counts`: Whether to
        return the optimizer's counts of updates.
        """
        counter = self.counter if counts else None
        count_before = None if counter is None else backend.snapshot(counter)
        started = time.perf_counter()
        try:
            last = self._overflowed if until_overflow else None
            rows, _ = backend.call_with_branches(self._training.compiled().run_batches, batches, last)
        except Exception as error:
            first_line = str(error).partition("\n")[0]
            _log.info("train: one step a call from here on, for %d steps in one failed (%s)", len(batches), first_line)
            self.steps_per_call.run_alone()
            return None
        ran = int(rows[0].shape[0])
        self.steps_per_call.learn(time.perf_counter() - started, ran)
        stacked, report, _ = self._unpack(rows)
        records = self._records(stacked, report, np.full(ran, _rows_of_each(batches)))
        return Group(records, backend.Stacked(stacked), report.get("counter") if counts else None, count_before)

    def trial(self, batch: Batch) -> StepRecords:
        """Return the records of a step on a batch, and undo the step."""
        with self.tried(batch) as records:
            return records

    @contextlib.contextmanager
    def tried(self, batch: Batch) -> Iterator[StepRecords]:
        """Yield the records of a step on a batch, which is undone at the end of the block."""
        for attempt in self._training.attempts():
            with attempt:
                rows, undo = backend.call_with_branches(self._training.compiled().run_batches, [batch])
        try:
            stacked, report, _ = self._unpack(rows)
            yield self._records(stacked, report, np.array([backend.refuse_empty(batch)]))
        finally:
            undo()

    def loop(self, iterator: Any, count: int) -> CallResult:
        """Train on `count` batches of a backend iterator in one call."""
        with backend.naming_layers("Model"), self._restoring_state():
            for attempt in self._training.attempts():
                with attempt:
                    values = backend.call_with_branches(self._training.compiled().run_stream, iterator, count)
        return self._loop_result(values, count)

    def loop_until_overflow(self, iterator: Any, count: int) -> tuple[Batch, CallResult]:
        """Train as `loop` does, but stop after a step that overflows; return the last batch too."""
        with backend.naming_layers("Model"), self._restoring_state():
            for attempt in self._training.attempts():
                with attempt:
                    run = self._training.compiled().run_stream_until
                    values, batch = backend.call_with_branches(run, iterator, count, self._overflowed)
        return batch, self._loop_result(values, int(values[0].shape[0]))

    def _loop_result(self, values: Sequence[Tensor], count: int) -> CallResult:
        stacked, report, sizes = self._unpack(values)
        rows = sizes[0] if sizes else self._training.compiled().sizes
        # Without sizes, all batches have the static size that the step was traced with.
        records = self._records(stacked, report, np.full(count, self._rows) if rows is None else rows)
        return CallResult(records, Later(lambda: keras.tree.map_structure(lambda rows: rows[-1], stacked)))

    def _overflowed(self, values: Sequence[Tensor]) -> Tensor:
        """Whether a step overflowed, from the values that it returns inside a compiled call; a bool tensor."""
        outputs = self._unpack(values)[0]
        return keras.ops.any(outputs[1]) if self._has_overflow(outputs) else backend.to_tensor(False)

    @property
    def counter(self) -> keras.Variable | None:
        """The variable with the optimizer's count of updates; None if the network has no optimizer."""
        return None if self._step.driver is None else self._step.driver.counter

    def steps_done(self) -> int:
        """Return how many steps the network has counted; 0 if it counts updates of several batches, or nothing."""
        if self._step.driver is None or self._step.window is not None:
            return 0
        if self._step.scale is not None:
            counts = backend.to_numpy(self._step.state.counts)
            return int(counts[Count.APPLIED_STEPS] + counts[Count.SKIPPED_STEPS])
        return int(backend.to_numpy(self._step.driver.counter).item())

    @contextlib.contextmanager
    def _restoring_state(self) -> Iterator[None]:
        """Restore the network's state (moving statistics) if the call fails.

        In a graph of TensorFlow, or eagerly, a layer may write its statistics before a later operation of that step
        fails; weights are written after everything else.
        """
        variables = [] if backend.WRITES_AT_END and execution.current.graph_mode else self._state()
        values = [backend.snapshot(variable) for variable in variables]
        try:
            yield
        except backend.RefusedBatch:  # Raised before the step of that batch begins.
            raise
        except Exception:
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
            raise

    def _state(self) -> list[keras.Variable]:
        """Return the network's state variables, which are collected again after the step was recompiled."""
        compiled = self._training.compiled()
        if self._state_of[0] is not compiled:
            self._state_of = compiled, self._step.network_state()
        return self._state_of[1]

    def _unpack(self, values: Sequence[Tensor]) -> tuple[Tree, dict[str, Any], list[Tensor]]:
        """Split the values of a step: the outputs, the report by name, and the batch size if it is not static."""
        begin = self._output_count
        end = begin + self._report_count
        return self._pack_outputs(values[:begin]), self._pack_report(values[begin:end]), [*values[end:]]

    def _records(
        self, outputs: Tree, report: dict[str, Any], rows: Tensor | None,
        column: Callable[[Tensor], Any] = lambda value: value,
    ) -> StepRecords:
        """Return the records of steps; `column` makes a column of each of their outputs and scalars."""
        named = outputs if self._has_overflow(outputs) else keras.tree.flatten(outputs)[:1]
        columns: dict[str, Any] = dict(zip(("loss", "overflow", "loss_scale"), map(column, named), strict=False))
        columns |= {name: column(report[name]) for name in ("learning_rate", "grad_norm") if name in report}
        if "metrics" in report:
            columns["metrics"] = keras.tree.map_structure(column, report["metrics"])
        columns |= {name: report[name] for name in ("gradients", "predictions", NON_FINITE) if name in report}
        return StepRecords(**columns, rows=rows, stacked=column is not _as_column)

    def _has_overflow(self, outputs: Tree) -> bool:
        return self._step.scale is not None and isinstance(outputs, (tuple, list)) and len(outputs) == 3

    def traces(self) -> int:
        """Return how many times the step was traced."""
        return self._training.compiled().traces()  # type: ignore[no-any-return]


def _packing(structure: Any) -> Callable[[Sequence[Tensor]], Any]:
    """Return a function that packs flat values into a structure."""
    nested = keras.tree.is_nested
    # The first three cases are those of nearly every step, and Keras is too slow for them.
    if not nested(structure):
        return lambda values: values[0]
    if type(structure) is tuple and not any(map(nested, structure)):
        return tuple
    if type(structure) is dict and not any(map(nested, structure.values())):
        names = sorted(structure)
        return lambda values: dict(zip(names, values, strict=True))
    return lambda values: keras.tree.pack_sequence_as(structure, [*values])


def _as_column(value: Tensor) -> list[Any]:
    """Return a step's scalar as a column; stacking it would cost an operation."""
    return [value]


def _rows_of_each(batches: Sequence[Batch]) -> int:
    """Return the number of rows of each of some batches of equal shapes, without slicing stacked ones."""
    if not isinstance(batches, backend.Stacked):
        return backend.refuse_empty(batches[-1])
    return int((*keras.tree.flatten(batches.columns)[0].shape, 1)[1])
