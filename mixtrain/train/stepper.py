"""One compiled call of a train network: a batch, several batches, or those of an iterator; every step's results."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from mixtrain import backend, boundary
from mixtrain.loss_scale.rule import Count
from mixtrain.step.compiled_call import CompiledCall
from mixtrain.step.train_cell import NON_FINITE, TrainOneStepCell, TrainOneStepWithLossScaleCell
from mixtrain.train.later import Later
from mixtrain.train.records import StepRecords
from mixtrain.train.steps_per_call import StepsPerCall

Batch = tuple[Any, ...]
_log = logging.getLogger("mixtrain")


class CallResult(NamedTuple):
    """What a call of the compiled step came to.

    Attributes:
        records: The results of its steps.
        outputs: The network's outputs at the last of them; may be a `Later`.
    """

    records: StepRecords
    outputs: Any


@dataclasses.dataclass(frozen=True)
class Group:
    """Several steps that ran in one call.

    Attributes:
        records: Their results.
        outputs: The network's outputs at each step.
        counts: The optimizer's count of updates after each step, stacked; None where it was not asked for, or the
            network has no optimizer.
        count_before: That count before the first step; likewise.
    """

    records: StepRecords
    outputs: Sequence[Any]
    counts: Any
    count_before: Any


class Stepper:
    """Runs a train network, compiled once for all ways of feeding it.

    Args:
        network: Takes the columns of a batch, returns its outputs; a Cell.
        scaled: Whether outputs that are three mean ``(loss, overflow, loss_scale)``.
        needs: What callbacks ask each step to tell beside scalars.
        prepare: Called before each call, as `CompiledCall` does.

    Attributes:
        steps_per_call: How many steps a call should run.
    """

    def __init__(
        self,
        network: Any,
        *,
        scaled: bool,
        needs: Collection[str] = (),
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._network = network
        self._scaled = scaled
        self._needs = needs
        choice = functools.partial(network.jit_choice, network) if isinstance(network, TrainOneStepCell) else None
        self._training = CompiledCall(
            self._flat, network, choice, compile_function=backend.CompiledSteps, prepare=prepare
        )
        self._state_of: tuple[Any, list[keras.Variable]] = None, []
        self._structure: Any = None
        self._reported: dict[str, Any] = {}
        self._outputs_count = self._reported_count = 0
        self._rows: int | None = None
        self.steps_per_call = StepsPerCall(backend.GROUPS)

    def _flat(self, *batch: Any) -> tuple[Any, ...]:
        own = isinstance(self._network, TrainOneStepCell)
        found = self._network.run_with_report(*batch, needs=self._needs) if own else (self._network(*batch), {})
        self._structure, self._reported = boundary.settled(found[0]), boundary.settled(found[1])
        flat, report = keras.tree.flatten(self._structure), keras.tree.flatten(self._reported)
        self._outputs_count, self._reported_count = len(flat), len(report)
        rows = rows_of(batch)
        self._rows = rows if isinstance(rows, int) else None
        # A batch whose size is open, as one of an iterator may be, tells it.
        return (*flat, *report, *(() if isinstance(rows, int) else (rows,)))

    def step(self, batch: Batch) -> CallResult:
        """Train on one batch."""
        started = time.perf_counter()
        with backend.naming_layers("Model"):
            found = backend.call_with_branches(self._training.compiled().one, *batch)
            if self.steps_per_call.waits:
                backend.wait_for(found)
        self.steps_per_call.learn(time.perf_counter() - started, 1)
        outputs, report, _ = self._parted(found)
        return CallResult(self._records(outputs, report, np.array([rows_of(batch)]), _of_one), outputs)

    def several(
        self, batches: Sequence[Batch], *, until_overflow: bool = False, counts: bool = False
    ) -> Group | None:
        """Train on several batches alike in one call; None, with nothing done, where that fails.

        Step by step the error comes where it belongs. The steps after it run one a call, for it may be the group that
        fails and none of its steps, as where memory is short; the log says why.

        Args:
            batches: The batches.
            until_overflow: Whether none is trained on after one that overflows.
            counts: Whether the optimizer's counts of updates are asked for.
        """
        counter = self.counter if counts else None
        before = None if counter is None else backend.snapshot(counter)
        started = time.perf_counter()
        try:
            last = self._overflowed if until_overflow else None
            rows, _ = backend.call_with_branches(self._training.compiled().several_undoable, batches, last)
        except Exception as error:
            first_line = str(error).partition("\n")[0]
            _log.info("train: one step a call from here on, for %d steps in one failed (%s)", len(batches), first_line)
            self.steps_per_call.run_alone()
            return None
        ran = int(rows[0].shape[0])
        self.steps_per_call.learn(time.perf_counter() - started, ran)
        stacked, report, _ = self._parted(rows)
        records = self._records(stacked, report, np.full(ran, _rows_of_each(batches)))
        return Group(records, backend.Stacked(stacked), report.get("counter") if counts else None, before)

    def trial(self, batch: Batch) -> StepRecords:
        """Return what a step on a batch would come to; all variables are as they were."""
        rows, undo = backend.call_with_branches(self._training.compiled().several_undoable, [batch])
        undo()
        stacked, report, _ = self._parted(rows)
        return self._records(stacked, report, np.array([rows_of(batch)]))

    def loop(self, iterator: Any, count: int) -> CallResult:
        """Train on `count` batches of a backend iterator in one call."""
        with backend.naming_layers("Model"), self._state_kept():
            found = backend.call_with_branches(self._training.compiled().streamed, iterator, count)
        return self._of_loop(found, count)

    def loop_until_overflow(self, iterator: Any, count: int) -> tuple[Batch, CallResult]:
        """Train as `loop` does, but on no batch after one that overflows; return the last batch too."""
        with backend.naming_layers("Model"), self._state_kept():
            run = self._training.compiled().streamed_until
            found, batch = backend.call_with_branches(run, iterator, count, self._overflowed)
        return batch, self._of_loop(found, int(found[0].shape[0]))

    def _of_loop(self, found: Sequence[Any], count: int) -> CallResult:
        stacked, report, sizes = self._parted(found)
        rows = sizes[0] if sizes else self._training.compiled().sizes
        # Where batches are known to be as long as each other, they count as much as one that ran by itself.
        records = self._records(stacked, report, np.full(count, self._rows) if rows is None else rows)
        return CallResult(records, Later(lambda: keras.tree.map_structure(lambda rows: rows[-1], stacked)))

    def _overflowed(self, values: Sequence[Any]) -> Any:
        """Return whether a step overflowed, given what it returns inside a compiled call."""
        outputs = self._parted(values)[0]
        return keras.ops.any(outputs[1]) if self._tells_overflow(outputs) else backend.to_tensor(False)

    @property
    def counter(self) -> keras.Variable | None:
        """The variable that holds the optimizer's count of updates; None where the network has no optimizer."""
        return self._network.driver.counter if isinstance(self._network, TrainOneStepCell) else None

    def steps_done(self) -> int:
        """Return how many steps the network counts; 0 where it counts updates of several batches, or nothing."""
        network = self._network
        if not isinstance(network, TrainOneStepCell) or network.window is not None:
            return 0
        if isinstance(network, TrainOneStepWithLossScaleCell):
            counts = backend.to_numpy(network.state.counts)
            return int(counts[Count.APPLIED_STEPS] + counts[Count.SKIPPED_STEPS])
        return int(backend.to_numpy(network.driver.counter).item())

    @contextlib.contextmanager
    def _state_kept(self) -> Iterator[None]:
        """Give the network's state (moving statistics) its value back where a call fails.

        In a graph a layer may write its statistics before a later operation of that step fails; weights are written
        after everything else.
        """
        variables = self._state()
        values = [backend.snapshot(variable) for variable in variables]
        try:
            yield
        except backend.LabelOutOfRange:  # The step with that label has not begun.
            raise
        except Exception:
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
            raise

    def _state(self) -> list[keras.Variable]:
        """Return the network's state, looked for where the step has been recompiled since the last time."""
        compiled = self._training.compiled()
        if self._state_of[0] is not compiled and isinstance(self._network, TrainOneStepCell):
            self._state_of = compiled, self._network.network_state()
        return self._state_of[1]

    def _parted(self, values: Sequence[Any]) -> tuple[Any, dict[str, Any], list[Any]]:
        """Return the network's outputs, what was reported besides by name, and what is left: sizes, where they vary."""
        first = self._outputs_count
        last = first + self._reported_count
        return _packed(self._structure, values[:first]), _packed(self._reported, values[first:last]), [*values[last:]]

    def _records(
        self, outputs: Any, report: dict[str, Any], rows: Any, form: Callable[[Any], Any] = lambda value: value
    ) -> StepRecords:
        """Return the records of steps, from their outputs and reports, each in a form."""
        named = outputs if self._tells_overflow(outputs) else keras.tree.flatten(outputs)[:1]
        columns: dict[str, Any] = dict(zip(("loss", "overflow", "loss_scale"), map(form, named), strict=False))
        columns |= {name: form(report[name]) for name in ("learning_rate", "grad_norm") if name in report}
        if "metrics" in report:
            columns["metrics"] = keras.tree.map_structure(form, report["metrics"])
        columns |= {name: report[name] for name in ("gradients", "predictions", NON_FINITE) if name in report}
        return StepRecords(**columns, rows=rows, stacked=form is not _of_one)

    def _tells_overflow(self, outputs: Any) -> bool:
        return self._scaled and isinstance(outputs, (tuple, list)) and len(outputs) == 3

    def traces(self) -> int:
        """Return how often the step was traced."""
        return self._training.compiled().traces()  # type: ignore[no-any-return]


def _packed(structure: Any, values: Sequence[Any]) -> Any:
    """Return values in a structure; a tensor, and a dict of tensors, take Keras longer than a step may."""
    if not isinstance(structure, (dict, tuple, list)):
        return values[0]
    if isinstance(structure, dict) and not any(isinstance(one, (dict, tuple, list)) for one in structure.values()):
        return dict(zip(sorted(structure), values, strict=True))
    return keras.tree.pack_sequence_as(structure, [*values])


def _of_one(value: Any) -> list[Any]:
    """Return a step's scalar as a column; stacking it would cost an operation."""
    return [value]


def rows_of(batch: Batch) -> Any:
    """Return the number of rows of a batch, an int or, where it is open, a tensor; 1 for one that has no rows."""
    first: Any = batch[0] if isinstance(batch[0], backend.BACKEND_TENSORS) else keras.tree.flatten(batch)[0]
    if not len(first.shape):
        return 1
    # Asking for the shape of an eager tensor would run an operation.
    return first.shape[0] if first.shape[0] is not None else keras.ops.shape(first)[0]


def _rows_of_each(batches: Sequence[Batch]) -> int:
    """Return the number of rows of each of some batches alike; none is cut out of those that are stacked."""
    if not isinstance(batches, backend.Stacked):
        return rows_of(batches[-1])  # type: ignore[no-any-return]
    return int((*keras.tree.flatten(batches.columns)[0].shape, 1)[1])
