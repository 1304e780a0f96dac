"""The training loop: epochs, hooks and stops; one loop for host feed and sink feed."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import sys
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mixtrain import backend, context
from mixtrain.loss_scale.guard import OverflowGuard
from mixtrain.loss_scale.manager import LossScaleManager
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.feed import Feed
from mixtrain.train.history import EpochHistory
from mixtrain.train.records import StepRecords
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.train.step_groups import group_calls, grouped, run_group
from mixtrain.train.stepper import Stepper


# The calls of a pass: a batch, what to call, and how many steps that runs.
_Calls = Generator[tuple[Any, Callable[[], StepRecords], int], None, None]


@dataclasses.dataclass
class TrainingRun:
    """Everything one call of `train` or `fit` works with.

    Attributes:
        stepper: Runs the train network.
        feed: The training data.
        callbacks: Whom to tell.
        context: What callbacks see and stop the run by.
        arguments: The same, for the loop to write.
        first_epoch: Number of the first epoch, from 1.
        last_epoch: Number of the last epoch.
        sink: Whether a call runs many steps.
        sink_size: Steps in a call of sink feed; -1 for the epoch.
        sink_skip: Batches that sink feed leaves out at first: those that earlier epochs took of the pass it begins in.
        guard: Stops endless overflow; None where no step can be skipped.
        host_manager: A manager that is moved from Python after every step, with how to set the scale.
        evaluate: Evaluates after an epoch where one is due, and returns the values; else None.
        finish: Called once after the last step: what the optimizer does at the end of training.
        skip: Batches of its first epoch that a run leaves out: those that an interrupted run has trained on.
        take_up: Called with the run and a number of epochs where a callback has put back a run that was interrupted
            after them (``arguments.epochs_done``): moves the data to that place.
    """

    stepper: Stepper
    feed: Feed
    callbacks: CallbackList
    context: RunContext
    arguments: CallbackArguments
    first_epoch: int
    last_epoch: int
    sink: bool
    sink_size: int
    guard: OverflowGuard | None
    host_manager: tuple[LossScaleManager, Callable[[Any], None]] | None
    evaluate: Callable[[int], Mapping[str, Any] | None]
    finish: Callable[[], None] = lambda: None
    take_up: Callable[[TrainingRun, int], None] = lambda run, epochs: None
    sink_skip: int = 0
    skip: int = 0
    step: int = 0
    sink_iterator: Any = None
    sink_left: int = 0


def run_epochs(run: TrainingRun) -> EpochHistory:
    """Train for the epochs of a run.

    Returns:
        One value an epoch of "loss" (the mean over the rows of applied steps; see `epoch_values`), with loss scaling
        "loss_scale" and "skipped_steps", and after evaluations "val_...".

    Raises:
        LossScaleExhausted: Too many steps overflowed.
        RuntimeError: The dataset ended before its own size.
    """
    history = EpochHistory()
    warned = False
    run.callbacks.on_train_begin(run.context)
    for epoch in range(_first_epoch(run), run.last_epoch + 1):
        run.arguments._set(cur_epoch_num=epoch)
        run.callbacks.on_train_epoch_begin(run.context)
        records = StepRecords.joined(list(_run_pass(run, epoch)))
        warned = warned or _warn_of_forward(epoch, records)
        values = epoch_values(records)
        found = run.evaluate(epoch)
        if found is not None:
            values |= {f"val_{name.removeprefix('eval_')}": value for name, value in found.items()}
        history.add(epoch, values)
        run.arguments._set(epoch_values=values, epoch_results=records)
        run.callbacks.on_train_epoch_end(run.context)
        if run.context.get_stop_requested():
            break
    run.finish()
    run.callbacks.on_train_end(run.context)
    return history


def _first_epoch(run: TrainingRun) -> int:
    """Return the number of the first epoch; a later one where a callback took up a run that was interrupted."""
    done, batches = int(run.arguments.get("epochs_done", 0)), int(run.arguments.get("batches_done", 0))
    if (done, batches) < (run.first_epoch - 1, 1):
        return run.first_epoch
    run.take_up(run, done)
    # A step has the number that it has in a run from the first batch of its epoch on.
    run.skip = run.step = batches
    return done + 1


def epoch_values(records: StepRecords) -> dict[str, float]:
    """Compute the values of an epoch from its steps: a batch counts in the loss by its rows, a skipped step does not.

    Where no step was applied, the loss is that of the skipped steps whose forward pass was finite: it tells how good
    the network is, for what overflowed is the gradients. It is nan where there is no such step.
    """
    applied = ~records.overflow
    counted = applied if applied.any() else np.isfinite(records.loss)
    rows = records.rows[counted]
    losses = records.loss[counted].astype(np.float64)
    values = {"loss": float(np.average(losses, weights=rows)) if rows.sum() else math.nan}
    if records.scaled:
        values["loss_scale"] = float(records.loss_scale[-1])
        values["skipped_steps"] = int(records.overflow.sum())
    return values


def _run_pass(run: TrainingRun, epoch: int) -> Iterator[StepRecords]:
    """Run the calls of one epoch; yield each call's records."""
    steps = run.skip
    with contextlib.closing(_sink_calls(run) if run.sink else _host_calls(run, epoch)) as calls:
        for batch, call, count in calls:
            run.arguments._set(cur_step_num=run.step + count, train_dataset_element=batch)
            run.callbacks.on_train_step_begin(run.context)
            with backend.telling_place("Model.train", lambda index: f"step {run.step + 1 + index}, epoch {epoch}"):
                records = call()
            run.step += count
            steps += count
            run.arguments._set(net_outputs=run.stepper.outputs, step_results=records)
            run.callbacks.on_train_step_end(run.context)
            yield records
    size = run.feed.size
    if not run.sink and size is not None and steps < size and not run.context.get_stop_requested():
        _ended_early(steps, size, epoch)


def _host_calls(run: TrainingRun, epoch: int) -> _Calls:
    """Yield the calls of a pass, until a stop is requested.

    Where no callback needs control between steps, several run together: a stop that is requested while callbacks are
    told of them takes effect after the last.
    """
    told = run.callbacks.listens("on_train_step_begin") or run.callbacks.listens("on_train_step_end")
    for group in _groups(run, epoch):
        if len(group) == 1:
            yield group[0], functools.partial(_host_call, run, group[0]), 1
        else:
            follow = functools.partial(_followed, run, batch=group[-1])
            if told:
                calls = group_calls(run.stepper, group, follow, show=run.callbacks.look_beyond)
                with contextlib.closing(calls):
                    for batch, call in calls:
                        yield batch, call, 1
            else:
                yield group[-1], functools.partial(run_group, run.stepper, group, follow), len(group)
        if run.context.get_stop_requested():
            return


def _groups(run: TrainingRun, epoch: int) -> Iterator[Sequence[Any]]:
    """Yield the batches of a pass in groups that may run together."""
    batches, run.skip = itertools.islice(run.feed.batches(), run.skip, None), 0
    groups = grouped(batches, functools.partial(_steps_together, run))
    while True:
        try:
            group = next(groups, None)
        except Exception as error:
            error.add_note(f"Raised by the training dataset in epoch {epoch}, after step {run.step}.")
            raise
        if group is None:
            return
        yield group


def _host_call(run: TrainingRun, batch: tuple[Any, ...]) -> StepRecords:
    """Run one step on a batch."""
    return _followed(run, run.stepper.step(batch), batch=batch)


def _steps_together(run: TrainingRun, size: int) -> int:
    """Return how many steps of batches of a size in bytes may run in a call, from the present step on."""
    free = run.callbacks.free_steps(run.context)
    if free == 1 or not context.graph_mode():
        return 1
    return int(min(free, max(_steps_unwatched(run), 1), run.stepper.pace.steps(size)))


def _sink_calls(run: TrainingRun) -> _Calls:
    """Yield the one call of an epoch in sink feed; its batches never come to the host."""
    size = run.feed.size
    count = size if run.sink_size == -1 else run.sink_size
    if not size or not count:
        raise ValueError(
            "Model.train: with dataset_sink_mode=True the dataset must know its size; got one of unknown size. "
            "Write dataset_sink_mode=False, or give the dataset a length."
        )
    yield None, functools.partial(_sink_call, run, size, count), count


def _sink_call(run: TrainingRun, size: int, count: int) -> StepRecords:
    """Run `count` steps through the backend's iterator, with a compiled call for each pass that they touch.

    A step that may have to end the run is run by itself, so that its number is right and its batch at hand.
    """
    parts: list[StepRecords] = []
    done = 0
    if run.sink_iterator is None:
        run.sink_iterator = run.feed.graph_iterator()
        for _ in range(run.sink_skip):
            next(run.sink_iterator)
        run.sink_left = size - run.sink_skip
    while done < count:
        run.sink_left = run.sink_left or size
        steps = min(count - done, run.sink_left, _steps_unwatched(run))
        try:
            batch = None if steps else next(run.sink_iterator)
            records = run.stepper.step(batch) if batch else run.stepper.loop(run.sink_iterator, steps)
        except backend.LabelOutOfRange as error:
            error.index += done
            raise
        except backend.EndOfStream:
            _raise_pending(run)
            _ended_early(None, size, run.arguments.cur_epoch_num)
        except Exception:
            _raise_pending(run)
            raise
        done += len(records)
        run.sink_left -= len(records)
        parts.append(_followed(run, records, batch=batch, before=run.step + done - len(records)))
    return parts[0] if len(parts) == 1 else StepRecords.joined(parts)


def _steps_unwatched(run: TrainingRun) -> int:
    """Return how many steps may run before something outside the compiled call must see their results."""
    free = math.inf if run.guard is None else run.guard.free_steps
    return int(min(free, sys.maxsize if run.host_manager is None else 1))


def _raise_pending(run: TrainingRun) -> None:
    """Raise what the dataset's own code raised, if anything."""
    try:
        run.feed.raise_pending()
    except Exception as error:
        error.add_note(f"Raised by the training dataset in epoch {run.arguments.cur_epoch_num}.")
        raise


def _ended_early(steps: int | None, size: int, epoch: int) -> None:
    after = "before that" if steps is None else f"after {steps}"
    raise RuntimeError(
        f"Model.train: the dataset must give the {size} batches that it counts; in epoch {epoch} it ended {after}. "
        "Look at its __len__ or its generator."
    )


def _followed(run: TrainingRun, records: StepRecords, *, batch: Any, before: int | None = None) -> StepRecords:
    """Do what must follow steps at once: a user's manager moves the scale, the guard looks; return the records.

    Args:
        run: The run.
        records: The steps' results.
        batch: The last of their batches; None where none of them can end the run.
        before: Steps run before them; by default those that callbacks were told of.
    """
    if run.host_manager is not None:
        manager, set_scale = run.host_manager
        for overflow in records.overflow:
            manager.update_loss_scale(bool(overflow))
        set_scale(backend.to_tensor(float(manager.get_loss_scale())))
    if run.guard is not None:
        step = (run.step if before is None else before) + len(records)
        run.guard.after(records, step, run.feed.first() if batch is None else batch)
    return records


def _warn_of_forward(epoch: int, records: StepRecords) -> bool:
    """Warn where steps were skipped whose loss itself was not finite; return whether there were any."""
    hopeless = int((records.overflow & ~np.isfinite(records.loss)).sum())
    if hopeless:
        warnings.warn(
            f"Model: in epoch {epoch}, {hopeless} of {len(records)} steps were skipped although a smaller loss scale "
            "cannot help: their loss itself was not finite. Look at the input data and at layers that overflow in "
            "half precision (model.precision_report(), to_float).",
            stacklevel=2,
        )
    return bool(hopeless)
