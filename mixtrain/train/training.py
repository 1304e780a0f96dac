"""One call of `Model.train` or `Model.fit`: its arguments, checked, made into a run and run."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

from mixtrain import backend, checks, context
from mixtrain.diagnostics.non_finite import Finding, find_non_finite
from mixtrain.loss_scale.guard import OverflowGuard
from mixtrain.serialization.latest import load_latest_checkpoint
from mixtrain.step.train_cell import TrainOneStepCell, TrainOneStepWithLossScaleCell
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.evaluation import Evaluation, evaluate
from mixtrain.train.feed import Feed
from mixtrain.train.history import EpochHistory
from mixtrain.train.loop import TrainingRun, run_epochs
from mixtrain.train.networks import Networks
from mixtrain.train.progress import Verbose, as_list, resolved, with_progress
from mixtrain.train.run_context import CallbackArguments, RunContext


@dataclasses.dataclass(frozen=True)
class TrainCall:
    """What `train` or `fit` was called with; see there.

    Attributes:
        where: "Model.train" or "Model.fit", for errors.
    """

    where: str
    epoch: int
    dataset: Any
    callbacks: Any
    sink: bool
    sink_size: int
    initial_epoch: int
    verbose: Verbose
    resume: str | os.PathLike[str] | None = None

    def check(self) -> None:
        """Check the numbers and flags.

        Raises:
            TypeError: One has the wrong type.
            ValueError: One is out of range.
        """
        checks.integer(self.where, "epoch", self.epoch, at_least=1)
        checks.integer(self.where, "initial_epoch", self.initial_epoch, at_least=0)
        if self.initial_epoch >= self.epoch:
            raise checks.fail_value(
                self.where, f"initial_epoch must be less than epoch={self.epoch}", self.initial_epoch, "initial_epoch=0"
            )
        checks.boolean(self.where, "dataset_sink_mode", self.sink)
        if self.sink_size != -1:
            checks.integer(self.where, "sink_size", self.sink_size, at_least=1)
        if self.verbose not in ("auto", 0, 1, 2):
            raise checks.fail_value(
                self.where, 'verbose must be "auto", 0, 1 or 2', self.verbose, 'verbose="auto"'
            )

    def place_in_data(self) -> tuple[int, int]:
        """Return how many passes over the dataset the epochs before took, and how many batches of one more."""
        if not (self.initial_epoch and self.sink and self.sink_size > 0):
            return self.initial_epoch, 0
        counted = getattr(self.dataset, "get_dataset_size", None)
        size = Feed(self.dataset, self.where).size if counted is None else counted()
        return divmod(self.initial_epoch * self.sink_size, size) if size else (0, 0)


def run_training(
    call: TrainCall,
    feed: Feed,
    networks: Networks,
    *,
    bad_step_max: int,
    evaluation: Evaluation | None = None,
    due: Callable[[int], bool] = bool,
) -> EpochHistory:
    """Train.

    Args:
        call: What the user asked for.
        feed: Its dataset.
        networks: The Model's networks.
        bad_step_max: Maximum number of consecutive overflows.
        evaluation: What is evaluated between epochs, or None.
        due: Says whether it is evaluated after an epoch, by its number.

    Returns:
        The history.
    """
    networks.build_for(feed.first())
    context.warn_missing_device(backend.describe_device().kind)
    train_network = networks.train_network
    listed = as_list(call.callbacks)
    verbose = resolved(call.verbose, listed)
    arguments = CallbackArguments(
        mode="train",
        shows_tensors=networks.of_cells,
        network=networks.network,
        train_network=train_network,
        loss_fn=networks.loss_fn,
        optimizer=networks.optimizer,
        loss_scale_manager=networks.manager,
        train_dataset=call.dataset,
        epoch_num=call.epoch - call.initial_epoch,
        batch_num=(call.sink_size if call.sink and call.sink_size > 0 else feed.size) or 0,
        cur_step_num=0,
        dataset_sink_mode=call.sink,
        verbose=verbose,
    )
    callbacks = CallbackList(with_progress(listed, verbose, call.epoch, feed.size), arguments)
    run = TrainingRun(
        stepper=networks.stepper,
        feed=feed,
        callbacks=callbacks,
        context=RunContext(arguments),
        arguments=arguments,
        first_epoch=call.initial_epoch + 1,
        last_epoch=call.epoch,
        sink=call.sink,
        sink_size=call.sink_size,
        sink_skip=call.place_in_data()[1],
        guard=make_guard(networks, bad_step_max),
        host_manager=networks.host_manager,
        evaluate=lambda epoch: None,
        take_up=functools.partial(_take_up, call),
    )
    if evaluation is not None:
        run.evaluate = functools.partial(_evaluate_between, evaluation, run, due, train_network)
    if isinstance(train_network, TrainOneStepCell):
        run.finish = functools.partial(train_network.driver.finish, train_network.weights)
    if call.resume is not None:
        _resume(call.where, call.resume, run)
    train_network.set_train(True)
    try:
        with callbacks:
            return run_epochs(run)
    finally:
        # Given back now: found by the garbage collector, or at exit, its source in Python may be gone before it.
        run.sink_iterator = None


def _resume(where: str, directory: str | os.PathLike[str], run: TrainingRun) -> None:
    """Load the newest checkpoint of a folder, where it has one, and note how far that run had come."""
    checkpoint = load_latest_checkpoint(directory, run.arguments.train_network)
    if checkpoint is None:
        return
    if run.feed.size is None:
        raise checks.fail_value(where, "with resume, the dataset must know its size", None, "a dataset with a length")
    batches, before = run.arguments.batch_num, checkpoint.run_state.facts.get("batch_num")
    if batches != before:
        raise checks.fail_value(
            where, f"with resume, an epoch must have {before} steps as in {checkpoint.file!r}", batches,
            "the dataset and the sink_size of that run",
        )
    run.arguments.epochs_done = checkpoint.initial_epoch
    run.arguments.batches_done = checkpoint.initial_step


def _take_up(call: TrainCall, run: TrainingRun, epochs: int) -> None:
    """Move a run's data to where it is after some epochs."""
    passes, run.sink_skip = dataclasses.replace(call, initial_epoch=epochs).place_in_data()
    run.feed = Feed(call.dataset, call.where, passes)


def make_guard(networks: Networks, limit: int) -> OverflowGuard | None:
    """Return the guard of a run whose steps may be skipped, else None."""
    train_network = networks.train_network
    if not isinstance(train_network, TrainOneStepWithLossScaleCell):
        return None

    def diagnose(batch: Sequence[Any], loss_scale: float) -> Finding:
        return find_non_finite(networks.examined, networks.with_loss, batch, loss_scale)

    return OverflowGuard(train_network.state, diagnose, limit=limit)


def _evaluate_between(
    evaluation: Evaluation, run: TrainingRun, due: Callable[[int], bool], train_network: Any, epoch: int
) -> dict[str, Any] | None:
    """Evaluate after an epoch of `fit` where one is due, and go back to training mode."""
    if not due(epoch):
        return None

    def evaluated(*told: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return evaluate(evaluation, *told), dict(run.arguments.eval_results)

    values, results = run.callbacks.evaluating(evaluated, **evaluation.fields())
    train_network.set_train(True)
    run.arguments._set(metrics=values, eval_results=results)
    return results


def due_epochs(frequency: Any) -> Callable[[int], bool]:
    """Return what says whether an evaluation is due after an epoch.

    Args:
        frequency: Every so many epochs, or a list of epochs counted from 1.

    Raises:
        TypeError: It is neither.
        ValueError: It is under 1.
    """
    if isinstance(frequency, (list, tuple)) and all(isinstance(number, int) for number in frequency):
        return lambda epoch: epoch in frequency
    every = checks.integer("Model.fit", "valid_frequency", frequency, at_least=1)
    return lambda epoch: epoch % every == 0
