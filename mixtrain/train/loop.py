"""The training loop: epochs, hooks and stops; one loop for host feed and sink feed."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from mixtrain import backend, checks, context
from mixtrain.loss_scale.guard import OverflowGuard
from mixtrain.loss_scale.manager import DynamicLossScaleManager
from mixtrain.serialization.latest import load_latest_checkpoint
from mixtrain.step.train_cell import TrainOneStepCell, TrainOneStepWithLossScaleCell
from mixtrain.train.agreement import Agreement
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.compiled_networks import CompiledNetworks
from mixtrain.train.diagnosis import OverflowDiagnosis
from mixtrain.train.epoch_values import epoch_values, warn_of_forward
from mixtrain.train.evaluation import Evaluation, evaluate
from mixtrain.train.feed import Feed
from mixtrain.train.first_scale import FirstScale, step_with_retries
from mixtrain.train.history import EpochHistory
from mixtrain.train.later import Later, now
from mixtrain.train.networks import Networks
from mixtrain.train.progress import as_list, resolved, with_progress
from mixtrain.train.records import EpochRecords, StepRecords
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.train.sink import SinkData
from mixtrain.train.step_groups import Unread, grouped, run_group, step_calls, until_overflow
from mixtrain.train.stepper import Batch, CallResult
from mixtrain.train.steps_per_call import MAX_STEPS, MAX_UNREAD_STEPS
from mixtrain.train.training import Training

# The calls of an epoch: a batch, which may be a `Later`, what to call, and how many steps that runs.
_Calls = Generator[tuple[Any, Callable[[], CallResult], int], None, None]


class TrainingLoop:
    """One run of `Model.train` or `Model.fit`, and all that moves in it.

    Args:
        training: What was asked for.
        networks: What is trained, built.
        compiled: Its compiled calls.
        feed: The dataset, from where the run begins.
        skip: Batches of its first pass that sink feed leaves out.
        bad_step_max: Maximum number of consecutive overflows.
        retries: Whether a step that overflows is run again at smaller scales.
        evaluation: What is evaluated between epochs, or None.
    """

    def __init__(
        self,
        training: Training,
        networks: Networks,
        compiled: CompiledNetworks,
        feed: Feed,
        skip: int,
        *,
        bad_step_max: int,
        retries: bool = False,
        evaluation: Evaluation | None = None,
    ) -> None:
        self._training = training
        self._train_network = networks.train_network
        self._mode = compiled.train_mode
        self._diagnosis = compiled.diagnosis
        self._sampler = compiled.range_sampler
        self._guard = make_guard(networks, self._diagnosis, bad_step_max)
        self._host_manager = networks.host_manager
        chosen = isinstance(networks.manager, DynamicLossScaleManager) and networks.manager.finds_scale
        self._finds_scale = chosen or (networks.manager_by_default and networks.manager is not None)
        self._retries = retries and isinstance(networks.train_network, TrainOneStepWithLossScaleCell)
        self._first_scale: FirstScale | None = None
        self._metrics = networks.observer
        self._evaluation = evaluation
        # Where the run is: its data, and the steps that have run.
        self._feed = feed
        self._sink = self._sink_data(skip, training.initial_epoch) if training.sink else None
        self._step = 0
        # Batches of the first epoch that are left out: those that an interrupted run has trained on.
        self._skip = 0
        # What callbacks see of it, and stop it by.
        listed = as_list(training.callbacks)
        verbose = resolved(training.verbose, listed)
        self._arguments = CallbackArguments(
            mode="train",
            shows_tensors=networks.of_cells,
            network=networks.network,
            train_network=self._train_network,
            loss_fn=networks.loss_fn,
            optimizer=networks.optimizer,
            loss_scale_manager=networks.manager,
            train_dataset=training.dataset,
            epoch_num=training.epoch - training.initial_epoch,
            batch_num=(feed.size if self._sink is None else self._sink.epoch_size) or 0,
            cur_step_num=0,
            dataset_sink_mode=training.sink,
            verbose=verbose,
        )
        self._context = RunContext(self._arguments)
        shown = with_progress(listed, verbose, training.epoch, feed.size)
        self._callbacks = CallbackList(shown, self._arguments)
        self._stepper = compiled.stepper_for(self._callbacks.needs)
        self._agreement = None
        if networks.in_processes:
            # How many steps a call runs must not depend on how long they take here.
            self._stepper.steps_per_call.run_alone()
            self._agreement = Agreement(training.where, self._calls_alike(), self._callbacks.controls)

    def run(self) -> EpochHistory:
        """Train for the epochs of the run.

        Returns:
            One value an epoch of "loss" (the mean over the rows of applied steps; see `epoch_values`), with loss
            scaling "loss_scale" and "skipped_steps", and after evaluations "val_...".

        Raises:
            LossScaleExhausted: Too many steps overflowed.
            RuntimeError: The dataset ended before its own size.
        """
        history = EpochHistory(self._arguments.network, self._callbacks.keras_params())
        warned = False
        if self._training.resume is not None:
            self._resume(self._training.where, self._training.resume)
        self._mode.set(True)
        with contextlib.ExitStack() as stack:
            if self._agreement is not None:
                stack.enter_context(backend.telling_lost_process(self._training.where))
            stack.callback(self._close)
            callbacks = stack.enter_context(self._callbacks)
            callbacks.on_train_begin(self._context)
            first_epoch = self._first_epoch()
            self._first_scale = self._search()
            for epoch in range(first_epoch, self._training.epoch + 1):
                self._arguments._set(cur_epoch_num=epoch)
                callbacks.on_train_epoch_begin(self._context)
                records = self._run_epoch(epoch)
                warned = warned or warn_of_forward(epoch, records)
                values = epoch_values(records) | self._evaluate_after(epoch)
                history.add(epoch, values)
                self._arguments._set(epoch_values=values, epoch_results=records)
                callbacks.on_train_epoch_end(self._context)
                history.add(epoch, callbacks.added_to_logs())
                if self._agreement is not None:
                    self._agreement.check_rate(self._context)
                if self._stopped(in_epoch=False):
                    break
            if isinstance(self._train_network, TrainOneStepCell):
                # What the optimizer does at the end of training.
                self._train_network.driver.finish(self._train_network.weights)
            callbacks.on_train_end(self._context)
        return history

    def _stopped(self, *, in_epoch: bool) -> bool:
        if self._agreement is not None:
            return self._agreement.stopped(self._context, in_epoch=in_epoch)
        return self._context.get_stop_requested()

    def _calls_alike(self) -> dict[str, float]:
        """Return what the number of steps in each compiled call depends on."""
        training = self._training
        return {
            "the number of steps in an epoch": self._arguments.batch_num,
            "epoch": training.epoch,
            "initial_epoch": training.initial_epoch,
            "dataset_sink_mode": int(training.sink),
            "sink_size": training.sink_size,
            "(1 or 0) whether a callback needs each step": int(training.sink and self._callbacks.one_step_calls),
            "(1 or 0) whether a callback hears of overflows": int(self._ends_at_overflow),
            "the steps until a callback samples": int(min(self._callbacks.steps_to_sample(1), 2**30)) * training.sink,
        }

    def _close(self) -> None:
        self._diagnosis.forget_batch()
        if self._sink is not None:
            self._sink.close()

    def _first_epoch(self) -> int:
        """Return the number of the first epoch; a later one where a callback put back a run that was interrupted."""
        done, batches = int(self._arguments.get("epochs_done", 0)), int(self._arguments.get("batches_done", 0))
        if (done, batches) < (self._training.initial_epoch, 1):
            return self._training.initial_epoch + 1
        self._feed, skip = self._training.feed_after(done)
        if self._training.sink:
            self._sink = self._sink_data(skip, done)
        # A step has the number that it has in a run from the first batch of its epoch on.
        self._skip = self._step = batches
        return done + 1

    def _resume(self, where: str, directory: str | os.PathLike[str]) -> None:
        """Load the newest checkpoint of a folder, where it has one, and note how far that run had come."""
        checkpoint = load_latest_checkpoint(directory, self._train_network)
        if checkpoint is None:
            return
        if self._feed.size is None:
            raise checks.fail_value(
                where, "with resume, the dataset must know its size", None, "a dataset with a length"
            )
        batches, before = self._arguments.batch_num, checkpoint.run_state.facts.get("batch_num")
        if batches != before:
            raise checks.fail_value(
                where, f"with resume, an epoch must have {before} steps as in {checkpoint.file!r}", batches,
                "the dataset and the sink_size of that run",
            )
        arguments = self._arguments
        arguments.epochs_done, arguments.batches_done = checkpoint.initial_epoch, checkpoint.initial_step

    def _run_epoch(self, epoch: int) -> StepRecords:
        """Run the calls of an epoch; return the records of its steps."""
        epoch_records, first = EpochRecords(), self._step - self._skip
        if self._metrics is not None:
            self._metrics.reset()
        with contextlib.closing(self._host_calls(epoch) if self._sink is None else self._sink_calls(epoch)) as calls:
            for batch, call, count in calls:
                self._arguments._set(cur_step_num=self._step + count, train_dataset_element=batch)
                self._callbacks.on_train_step_begin(self._context)
                try:
                    records, outputs = call()
                except backend.LabelOutOfRange as error:
                    raise error.told("Model.train", f"step {self._step + 1 + error.index}, epoch {epoch}") from None
                if self._sink is None:
                    self._follow(records, self._step + count, batch)
                self._step += count
                self._arguments._set(net_outputs=outputs, step_results=records)
                self._callbacks.on_train_step_end(self._context)
                epoch_records.add(records)
        if isinstance(self._train_network, TrainOneStepCell):
            self._train_network.end_window()
        steps, size = self._step - first, self._feed.size
        if self._sink is None and size is not None and steps < size and not self._context.get_stop_requested():
            raise _ended_early(f"after {steps}", size, epoch)
        return epoch_records.joined()

    # ---- host feed --------------------------------------------------------------------------------------------
    def _host_calls(self, epoch: int) -> _Calls:
        """Yield the calls of a pass, until a stop is requested.

        Where no callback needs control between steps, several run together: a stop that is requested while callbacks
        are told of them takes effect after the last.
        """
        told = self._callbacks.listens("on_train_step_begin") or self._callbacks.listens("on_train_step_end")
        for group in self._groups(epoch, unread=not told and not self._ends_at_overflow and backend.GROUPS.reads):
            if isinstance(group, Unread):
                yield None, functools.partial(group.run, self._stepper), len(group)
            elif len(group) == 1:
                yield group[0], functools.partial(self._step_call(self._step + 1), group[0]), 1
            else:
                yield from self._group_calls(group, told)
            if self._stopped(in_epoch=True):
                return

    def _group_calls(self, group: Sequence[Batch], told: bool) -> _Calls:
        """Yield the calls of a group, each of a step where callbacks are told of steps."""
        stepper = self._stepper
        if self._samples_after(self._step):
            self._sample(group[0], self._step + 1)
        counts = told and self._callbacks.look_beyond
        several = functools.partial(stepper.several, counts=counts)
        parts = until_overflow(stepper, group, counts=counts) if self._ends_at_overflow else [(group, several)]
        for part, run in parts:
            if told:
                with contextlib.closing(step_calls(stepper, part, run)) as calls:
                    for batch, call in calls:
                        yield batch, self._ended(call, batch), 1
            else:
                call = functools.partial(run_group, stepper, part, run)
                last = Later(functools.partial(part.__getitem__, -1))
                yield last, self._ended(call, last), len(part)

    def _groups(self, epoch: int, *, unread: bool) -> Iterator[Sequence[Batch] | Unread]:
        """Yield the batches of a pass in groups that may run together."""
        batches = self._feed.batches(held=True, ahead=self._may_group)
        for _ in range(self._skip):
            next(batches, None)
        self._skip = 0

        def most(size: int) -> int:
            return 1 if self._samples_after(self._step) else self._steps_together(size, MAX_UNREAD_STEPS)

        groups = grouped(
            batches, self._steps_together, usual=self._usual_steps, unread=most if unread else None
        )
        while True:
            try:
                group = next(groups, None)
            except Exception as error:
                error.add_note(f"Raised by the training dataset in epoch {epoch}, after step {self._step}.")
                raise
            if group is None:
                return
            yield group

    def _steps_together(self, size: int, most: int = MAX_STEPS) -> int:
        """Return how many steps of batches of a size in bytes may run in a call, from the present step on."""
        free = self._callbacks.free_steps(self._context)
        if free == 1 or not context.graph_mode():
            return 1
        unwatched = self._steps_unwatched(self._step, sampled=self._samples_after(self._step))
        return int(min(free, max(unwatched, 1), self._stepper.steps_per_call.estimate(size, most)))

    def _usual_steps(self, size: int) -> int:
        """Return how many steps of batches of a size in bytes run in a call where none of them is of interest."""
        return self._stepper.steps_per_call.estimate(size) if self._may_group else 1

    @property
    def _may_group(self) -> bool:
        """Whether nobody needs control between steps, but for those that something is to happen after."""
        return not self._callbacks.controls and self._host_manager is None and context.graph_mode()

    # ---- sink feed --------------------------------------------------------------------------------------------
    def _sink_calls(self, epoch: int) -> _Calls:
        """Yield the one call of an epoch in sink feed; its batches never come to the host."""
        count = self._sink.epoch_size  # type: ignore[union-attr]
        steps = 1 if self._callbacks.one_step_calls else count
        for _ in range(count // steps):
            yield None, functools.partial(self._sink_call, steps, epoch), steps
            if self._stopped(in_epoch=True):
                return

    def _sink_data(self, skip: int, done: int) -> SinkData:
        training = self._training
        return SinkData(self._feed, skip, epochs=training.epoch - done, sink_size=training.sink_size)

    def _sink_call(self, count: int, epoch: int) -> CallResult:
        """Run `count` steps, with a compiled call for each pass that they touch."""
        sink: SinkData = self._sink  # type: ignore[assignment]
        parts: list[StepRecords] = []
        done = 0
        while done < count:
            try:
                step = self._step + done
                # Where a compiled call reads the dataset itself, a batch can be seen only if it is read for its step.
                shown = not backend.GROUPS.reads and self._samples_after(step)
                batch, result = sink.run(
                    self._stepper, self._step_call(step + 1), count - done,
                    self._steps_unwatched(step, sampled=shown), epoch,
                    look=functools.partial(self._sample, step=step + 1) if shown else None,
                    at_overflow=self._after_overflow if self._ends_at_overflow else None,
                )
            except backend.LabelOutOfRange as error:
                error.index += done
                raise
            except backend.EndOfStream:
                raise _ended_early("before that", sink.size, epoch) from None
            done += len(result.records)
            parts.append(result.records)
            self._follow(result.records, self._step + done, batch)
        return CallResult(parts[0] if len(parts) == 1 else StepRecords.joined(parts), result.outputs)

    # ---- single steps -----------------------------------------------------------------------------------------
    def _search(self) -> FirstScale | None:
        """Return the search for the first loss scale; None where it was chosen, or was found in an earlier run."""
        network = self._train_network
        if not self._finds_scale or not isinstance(network, TrainOneStepWithLossScaleCell):
            return None
        known = int(backend.to_numpy(network.state.applied_steps)) > 0
        return None if known else FirstScale(self._stepper, network.state, network.window)

    def _step_call(self, step: int) -> Callable[[Batch], CallResult]:
        """Return what trains on the batch of a step."""
        call = self._unsampled_call()
        if not self._samples_after(step - 1):
            return call

        def sampled(batch: Batch) -> CallResult:
            self._sample(batch, step)
            return call(batch)

        return sampled

    def _samples_after(self, done: int) -> bool:
        """Whether a callback samples the batch of the step after `done`; before it, so it may be the first of several.
        """
        return not self._callbacks.steps_to_sample(done)

    def _sample(self, batch: Batch, step: int) -> None:
        """Let callbacks look at a batch that is about to be trained on; `step` is the number of its step."""
        measure = functools.partial(self._sampler, batch)
        with self._arguments._lent(cur_step_num=step, train_dataset_element=batch, measure_ranges=measure):
            self._callbacks.on_train_sample(self._context)

    def _unsampled_call(self) -> Callable[[Batch], CallResult]:
        if self._first_scale is not None and not self._first_scale.found:
            return self._first_scale.step
        if self._retries:
            return functools.partial(step_with_retries, self._stepper, self._train_network.state)
        return self._stepper.step

    def _ended(self, call: Callable[[], CallResult], batch: Batch | Later) -> Callable[[], CallResult]:
        """Return a call of steps none of which follows one that overflows; the batch is that of the last of them."""
        if not self._retries:
            return call

        def ended() -> CallResult:
            result = call()
            return self._after_overflow(now(batch), result) if result.records.overflow[-1] else result

        return ended

    def _after_overflow(self, batch: Batch, result: CallResult) -> CallResult:
        """Return what steps came to of which the last overflowed: it is run again where batches are retried."""
        if not self._retries:
            return result
        *before, last = result.records.each()
        again = step_with_retries(
            self._stepper, self._train_network.state, batch, CallResult(last, result.outputs)
        )
        return CallResult(StepRecords.joined([*before, again.records]), again.outputs)

    @property
    def _ends_at_overflow(self) -> bool:
        """Whether no step of a call follows one that overflows."""
        return self._retries or self._callbacks.hear_of_overflows

    # ---- what follows steps -----------------------------------------------------------------------------------
    def _steps_unwatched(self, done: int, *, sampled: bool = False) -> int:
        """Return how many steps may run, after `done`, before one whose batch or results must be seen outside.

        Args:
            done: How many have run.
            sampled: Whether the first batch of all is sampled before they run.
        """
        if self._first_scale is not None and not self._first_scale.found:
            return 0
        free = math.inf if self._guard is None else self._guard.free_steps
        to_sample = 1 + self._callbacks.steps_to_sample(done + 1) if sampled else self._callbacks.steps_to_sample(done)
        return int(min(free, to_sample, sys.maxsize if self._host_manager is None else 1))

    def _follow(self, records: StepRecords, step: int, batch: Any) -> None:
        """Do what must follow steps at once: a user's manager moves the scale, callbacks hear of it, the guard looks.

        Args:
            records: The steps' results.
            step: Number of the last of them.
            batch: The last of their batches; None where none of them can end the run.
        """

        def last_batch() -> Batch:
            return self._feed.first() if batch is None else now(batch)  # type: ignore[no-any-return]

        if self._host_manager is not None:
            manager, set_scale = self._host_manager
            for overflow in records.overflow:
                manager.update_loss_scale(bool(overflow))
            set_scale(backend.to_tensor(float(manager.get_loss_scale())))
        if self._callbacks.hear_of_overflows and batch is not None and records.overflow[-1]:
            last = records.each()[-1]
            explain = functools.partial(self._diagnosis, now(batch), float(last.loss_scale[0]), last.non_finite_counts)
            told = {"cur_step_num": step, "train_dataset_element": batch, "step_results": last}
            with self._arguments._lent(**told, explain_overflow=explain):
                self._callbacks.on_train_overflow(self._context)
        if self._guard is not None:
            self._guard.after(records, step, last_batch)

    def _evaluate_after(self, epoch: int) -> dict[str, Any]:
        """Evaluate after an epoch of `fit` where that is due; return the values as the history names them."""
        evaluation, arguments = self._evaluation, self._arguments
        if evaluation is None or not self._training.evaluates_after(epoch):
            return {}

        def evaluated(*told: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            return evaluate(evaluation, *told), dict(arguments.eval_results)

        values, results = self._callbacks.evaluating(evaluated, **evaluation.fields())
        self._mode.set(True)
        arguments._set(metrics=values, eval_results=results)
        return {f"val_{name.removeprefix('eval_')}": value for name, value in results.items()}


def make_guard(networks: Networks, diagnosis: OverflowDiagnosis, limit: int) -> OverflowGuard | None:
    """Return the guard of a run whose steps may be skipped, else None."""
    train_network = networks.train_network
    if not isinstance(train_network, TrainOneStepWithLossScaleCell):
        return None
    return OverflowGuard(train_network.state, diagnosis, limit=limit)


def _ended_early(when: str, size: int, epoch: int) -> RuntimeError:
    return RuntimeError(
        f"Model.train: the dataset must give the {size} batches that it counts; in epoch {epoch} it ended {when}. "
        "Look at its __len__ or its generator."
    )
