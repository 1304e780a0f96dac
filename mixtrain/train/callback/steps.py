"""The records of the last call or epoch, for hooks, whatever the train network returned."""

from __future__ import annotations

from mixtrain import backend
from mixtrain.train.records import StepRecords
from mixtrain.train.run_context import CallbackArguments


def steps_of(arguments: CallbackArguments) -> StepRecords:
    """Return the records of the last call.

    Without `step_results`, `net_outputs` are read: the loss, a tuple that starts with it, or all three values.
    """
    records = arguments.get("step_results")
    if records is not None:
        return records  # type: ignore[no-any-return]
    outputs = arguments.net_outputs
    if not isinstance(outputs, (tuple, list)):
        return StepRecords([outputs])
    if len(outputs) == 3 and backend.to_numpy(outputs[1]).dtype == bool:
        return StepRecords(*([output] for output in outputs))
    return StepRecords([outputs[0]])


def epoch_of(arguments: CallbackArguments) -> StepRecords:
    """Return the records of the last epoch; without `epoch_results` those of its last call."""
    records = arguments.get("epoch_results")
    return steps_of(arguments) if records is None else records


def any_applied(records: StepRecords) -> bool:
    """Whether at least one step changed the weights."""
    return not records.overflow.all()
