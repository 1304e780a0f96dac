"""One compiled call of a train network: a batch, several batches, or those of an iterator; every step's results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import engine
from mixtrain.nn.step.compiled_call import CompiledCall
from mixtrain.nn.step.train_cell import TrainOneStepCell
from mixtrain.precision.formats import choose_step_jit
from mixtrain.train.pace import Pace
from mixtrain.train.records import StepRecords

Batch = tuple[Any, ...]


class Stepper:
    """Runs a train network, compiled once for all ways of feeding it.

    Args:
        network: Takes the columns of a batch, returns its outputs; a Cell.
        scaled: Whether outputs that are three mean ``(loss, overflow, loss_scale)``.

    Attributes:
        outputs: The network's outputs at the last step run.
        pace: How many steps a call should run.
    """

    def __init__(self, network: Any, *, scaled: bool) -> None:
        self._network = network
        self._scaled = scaled
        self._training = CompiledCall(self._flat, lambda: choose_step_jit(network), engine.CompiledSteps)
        self._structure: Any = None
        self.outputs: Any = None
        self.pace = Pace(engine.GROUPS)

    def _flat(self, *batch: Any) -> tuple[Any, ...]:
        outputs = self._network(*batch)
        self._structure = outputs
        rows = rows_of(batch)
        # A batch whose size is open, as one of an iterator may be, tells it.
        return (*keras.tree.flatten(outputs), *(() if isinstance(rows, int) else (rows,)))

    def step(self, batch: Batch) -> StepRecords:
        """Train on one batch."""
        with engine.naming_layers("Model"), self.pace.timed(1):
            found = engine.call_with_branches(self._training.compiled().one, *batch)
            if self.pace.waits:
                engine.wait_for(found)
        self.outputs = self._packed(found)
        return StepRecords(*self._named(self.outputs, lambda value: [value]), rows=np.array([rows_of(batch)]))

    def several(self, batches: Sequence[Batch]) -> tuple[StepRecords, list[Any], Callable[[], None]]:
        """Train on several batches alike in one call.

        Returns:
            The steps' results, the network's outputs at each step, and a function that takes all the steps back.
        """
        with engine.naming_layers("Model"), self.pace.timed(len(batches)):
            rows, undo = engine.call_with_branches(self._training.compiled().several, batches)
        columns = [keras.ops.unstack(row, len(batches)) for row in rows]
        outputs = [self._packed([column[index] for column in columns]) for index in range(len(batches))]
        records = StepRecords(*self._named(self._packed(rows)), rows=np.full(len(batches), rows_of(batches[-1])))
        return records, outputs, undo

    def loop(self, iterator: Any, count: int) -> StepRecords:
        """Train on `count` batches of an engine iterator in one call."""
        with engine.naming_layers("Model"), self._state_kept():
            found = engine.call_with_branches(self._training.compiled().streamed, iterator, count)
        size = len(keras.tree.flatten(self._structure))
        rows, (sizes,) = found[:size], found[size:] or (self._training.compiled().sizes,)
        self.outputs = self._packed([row[-1] for row in rows])
        return StepRecords(*self._named(self._packed(rows)), rows=sizes)

    @contextlib.contextmanager
    def _state_kept(self) -> Iterator[None]:
        """Give the network's state (moving statistics) its value back where a call fails.

        In a graph a layer may write its statistics before a later operation of that step fails; weights are written
        after everything else.
        """
        variables = self._network.network_state() if isinstance(self._network, TrainOneStepCell) else []
        values = [engine.snapshot(variable) for variable in variables]
        try:
            yield
        except engine.LabelOutOfRange:  # The step with that label has not begun.
            raise
        except Exception:
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
            raise

    def _packed(self, values: Sequence[Any]) -> Any:
        # A step that was traced for batches of an open size tells theirs besides.
        size = len(keras.tree.flatten(self._structure))
        return keras.tree.pack_sequence_as(self._structure, list(values)[:size])

    def _named(self, outputs: Any, form: Callable[[Any], Any] = lambda value: value) -> tuple[Any, ...]:
        """Return, each in a form, (loss, overflow, loss_scale); without loss scaling the loss alone."""
        scaled = self._scaled and isinstance(outputs, (tuple, list)) and len(outputs) == 3
        return tuple(map(form, outputs if scaled else keras.tree.flatten(outputs)[:1]))

    def traces(self) -> int:
        """Return how often the step was traced."""
        return self._training.compiled().traces()  # type: ignore[no-any-return]


def rows_of(batch: Batch) -> Any:
    """Return the number of rows of a batch, an int or, where it is open, a tensor; 1 for one that has no rows."""
    first = keras.tree.flatten(batch)[0]
    if not len(first.shape):
        return 1
    # Asking for the shape of an eager tensor would run an operation.
    return first.shape[0] if first.shape[0] is not None else keras.ops.shape(first)[0]
