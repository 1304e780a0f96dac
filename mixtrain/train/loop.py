"""`TrainingLoop`: runs the epochs and callbacks of a training, with host feed or sink feed."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import math
import sys
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Final

from mixtrain import backend, checks, data_backend, execution
from mixtrain.diagnostics.finding import Finding
from mixtrain.loss_scale.guard import OverflowGuard
from mixtrain.serialization.latest import latest_checkpoint
from mixtrain.train.agreement import Agreement
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.callback.keras_adapter import added_to_logs, keras_params
from mixtrain.train.compiled_networks import CompiledNetworks
from mixtrain.train.epoch_values import epoch_values, warn_of_non_finite
from mixtrain.train.evaluation import Evaluation, evaluate
from mixtrain.train.feed import Feed
from mixtrain.train.first_scale import FirstScale, step_with_retries
from mixtrain.train.history import EpochHistory
from mixtrain.train.later import Later, now
from mixtrain.train.networks import Networks, warn_of_changed_weights
from mixtrain.train.progress import BAR, ProgressMonitor, as_list, resolve_verbose
from mixtrain.train.records import EpochRecords, StepRecords
from mixtrain.train.resume import resume_run
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.train.sink import SinkData
from mixtrain.train.step_groups import StreamedGroup, grouped, run_group, step_calls, until_overflow
from mixtrain.train.stepper import CallResult, StepCall
from mixtrain.train.steps_per_call import MAX_STEPS, MAX_STREAMED_STEPS
from mixtrain.train.training import Training
from mixtrain.typing import Batch

_Calls = Generator[StepCall, None, None]
# How many calls the explanation of an overflow looks back.
_RECENT_CALLS: Final = 32


class TrainingLoop:
    """A run of `Model.train` or `Model.fit`.

    `training`: The arguments of `train` or `fit`. `networks`: The networks, built. `compiled`: Their compiled calls.
    `feed`: The dataset, read from where the run begins. `skip`: Batches of its first pass that sink feed skips.
    `bad_step_max`: Maximum number of consecutive overflows. `retries`: Whether a step that overflows is run again at
    smaller scales. `evaluation`: The evaluation between epochs, or None.
    """

    def __init__(
        self, training: Training, networks: Networks, compiled: CompiledNetworks, feed: Feed, skip: int, *,
        bad_step_max: int, retries: bool = False, evaluation: Evaluation | None = None,
    ) -> None:
        if training.sink and training.joint is not None:
            raise checks.fail_value(
                training.where, "dataset_sink_mode must be False over the devices of several processes", True,
                "dataset_sink_mode=False",
            )
        self._training = training
        self._train_step = networks.step
        self._mode = compiled.train_mode
        self._diagnosis = compiled.diagnosis
        self._sampler = compiled.range_sampler
        # Of a run whose steps may be skipped.
        self._guard = (
            OverflowGuard(networks.step.state, self._diagnosis, limit=bad_step_max) if networks.scaled else None
        )
        self._networks = networks
        self._retries = retries and networks.scaled
        self._first_scale: FirstScale | None = None
        self._metrics = networks.observer
        self._evaluation = evaluation
        # Position of the run: its data, and the number of steps so far.
        self._feed = feed
        self._sink = self._sink_data(skip, training.initial_epoch) if training.sink else None
        self._step = 0
        # The records of the last calls, for who explains an overflow.
        self._recent: collections.deque[StepRecords] = collections.deque(maxlen=_RECENT_CALLS)
        # Batches of the first epoch to skip: a resumed run has trained on them before it was interrupted.
        self._skip = 0
        # Arguments, context and list of the callbacks.
        callbacks = as_list(training.callbacks)
        verbose = resolve_verbose(training.verbose, callbacks)
        self._arguments = CallbackArguments(
            mode="train",
            shows_tensors=networks.of_cells,
            network=networks.network,
            train_network=Later(lambda: networks.train_network),
            _step=networks.step,
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
        if training.in_keras_style:
            self._arguments.keras_epochs = training.epoch
        self._context = RunContext(self._arguments)
        if verbose:
            callbacks.append(ProgressMonitor(training.epoch, bar=verbose == BAR, size=feed.size))
        self._callbacks = CallbackList(callbacks, self._arguments)
        self._stepper = compiled.stepper_for(self._callbacks.needs)
        self._agreement = None
        if networks.in_processes:
            # All processes must run the same number of steps per call, however long a step takes in each.
            self._stepper.steps_per_call.run_alone()
            self._agreement = Agreement(training.where, self._call_settings(), self._callbacks.needs_control)

    def run(self) -> EpochHistory:
        """Train for the epochs of the run.

        Returns: Per epoch "loss" (the mean over the rows of applied steps; see `epoch_values`), with loss scaling
        "loss_scale" and "skipped_steps", and after evaluations "val_...".

        Raises: LossScaleExhausted if too many steps overflowed. RuntimeError if the dataset ended before its own size.
        """
        history = EpochHistory(self._arguments.network, keras_params(self._arguments))
        warned = False
        warn_of_changed_weights(self._training.where, self._train_step)
        resume, where = self._training.resume, self._training.where
        checkpoint = None if resume is None else latest_checkpoint(resume)
        if checkpoint is not None:
            resume_run(where, checkpoint, self._arguments, self._training.verbose != 0)
        self._mode.set(True)
        with contextlib.ExitStack() as stack:
            if self._agreement is not None:
                stack.enter_context(backend.naming_lost_process(self._training.where))
            stack.callback(self._close)
            callbacks = stack.enter_context(self._callbacks)
            callbacks.on_train_begin(self._context)
            first_epoch = self._first_epoch()
            if self._networks.finds_scale:  # The user chose none, and no earlier run has found one.
                step = self._train_step
                self._first_scale = FirstScale(self._stepper, step.state, step.window)
            for epoch in range(first_epoch, self._training.epoch + 1):
                self._arguments._set(cur_epoch_num=epoch)
                callbacks.on_train_epoch_begin(self._context)
                records = self._run_epoch(epoch)
                if not len(records):
                    continue  # Data of unknown size, and the checkpoint was written after the last batch of an epoch.
                dtypes = self._networks.precision.plan.compute_dtypes()
                warned = warned or warn_of_non_finite(epoch, records, self._train_step.weights, dtypes)
                values = epoch_values(records, self._metrics) | self._evaluate_after(epoch)
                number = epoch - self._training.in_keras_style
                history.add(number, values)
                self._arguments._set(epoch_values=values, epoch_results=records)
                callbacks.on_train_epoch_end(self._context)
                # Only now, as Keras callbacks add to the logs in `on_epoch_end`.
                history.add(number, added_to_logs(self._arguments))
                if self._agreement is not None:
                    self._agreement.check_rate(self._context)
                if self._stopped(in_epoch=False):
                    break
            if self._train_step.driver is not None:
                # Keras's optimizers may replace the weights by their moving averages at the end of training.
                self._train_step.driver.finish(self._train_step.weights)
            callbacks.on_train_end(self._context)
        return history

    def _stopped(self, *, in_epoch: bool) -> bool:
        if self._agreement is not None:
            return self._agreement.stopped(self._context, in_epoch=in_epoch)
        return self._context.get_stop_requested()

    def _call_settings(self) -> dict[str, float]:
        """Return the settings that determine the number of steps in each compiled call, by description."""
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
            "the callbacks that may read the weights (a checksum of their names)": (
                0 if training.joint is None else zlib.crc32(repr(self._callbacks.beyond_steps).encode())
            ),
        }

    def _close(self) -> None:
        self._diagnosis.forget_batch()
        if self._sink is not None:
            self._sink.close()

    def _first_epoch(self) -> int:
        """Return the number of the first epoch; that of the interrupted run where one was restored."""
        done, batches = int(self._arguments.get("epochs_done", 0)), int(self._arguments.get("batches_done", 0))
        if self._agreement is not None:
            self._agreement.check_start(done, batches)
        # Nothing was restored, or no more than `initial_epoch` says.
        if (done, batches) < (self._training.initial_epoch, 1):
            return self._training.initial_epoch + 1
        self._feed, skip = self._training.feed_after(done)
        if self._training.sink:
            self._sink = self._sink_data(skip, done)
        # Steps are numbered as in a run that begins with the first batch of this epoch.
        self._skip = self._step = batches
        return done + 1

    def _run_epoch(self, epoch: int) -> StepRecords:
        """Run the calls of an epoch; return the records of its steps."""
        epoch_records, first = EpochRecords(), self._step - self._skip
        self._arguments._set(steps_before_epoch=first)
        if self._metrics is not None:
            self._metrics.reset()
        with contextlib.closing(self._host_calls(epoch) if self._sink is None else self._sink_calls(epoch)) as calls:
            for call in calls:
                last_step = self._step + call.steps
                self._arguments._set(cur_step_num=last_step, train_dataset_element=call.batch)
                self._callbacks.on_train_step_begin(self._context)
                self._mode.set(True)  # An evaluation or a callback may have set it to inference.
                try:
                    if call.before is not None:
                        call.before()
                    records, outputs = call.run()
                except backend.RefusedBatch as error:
                    raise error.located("Model.train", f"step {self._step + 1 + error.index}, epoch {epoch}") from None
                if self._sink is None:
                    self._after_steps(records, last_step, call.batch)
                self._step = last_step
                self._arguments._set(net_outputs=outputs, step_results=records)
                self._callbacks.on_train_step_end(self._context)
                epoch_records.add(records)
        # The last batches of the epoch may not fill a window of accumulated gradients.
        self._train_step.end_window()
        steps, size = self._step - first, self._feed.size
        if self._sink is None and size is not None and steps < size and not self._context.get_stop_requested():
            raise _ended_early(f"after {steps}", size, epoch)
        if not steps:
            self._feed.first()  # Says that there is no batch, if so.
        if not self._context.get_stop_requested():
            self._arguments._set(steps_before_epoch=self._step)
        return epoch_records.joined()

    # ---- host feed --------------------------------------------------------------------------------------------
    def _host_calls(self, epoch: int) -> _Calls:
        """Yield the calls of a pass, until a stop is requested.

        Where no callback needs control between steps, several run together: a stop that a callback requests then takes
        effect after the last of them.
        """
        hooks = self._callbacks.listens("on_train_step_begin") or self._callbacks.listens("on_train_step_end")
        for group in self._groups(epoch, streamed=not hooks and not self._ends_at_overflow and backend.GROUPS.reads):
            if isinstance(group, StreamedGroup):
                yield StepCall(functools.partial(group.run, self._stepper), len(group))
            elif len(group) == 1:
                sampled = self._samples_after(self._step)
                sample = functools.partial(self._sample, group[0], self._step + 1) if sampled else None
                yield StepCall(functools.partial(self._step_call(), group[0]), batch=group[0], before=sample)
            else:
                yield from self._group_calls(group, hooks)
            if self._stopped(in_epoch=True):
                return

    def _group_calls(self, group: Sequence[Batch], hooks: bool) -> _Calls:
        """Yield the calls of a group: one per step where callbacks have step hooks, else one for all."""
        stepper = self._stepper
        if self._samples_after(self._step):
            self._sample(group[0], self._step + 1)
        counts = hooks and self._callbacks.reads_beyond_arguments
        several = functools.partial(stepper.several, counts=counts)
        parts = until_overflow(stepper, group, counts=counts) if self._ends_at_overflow else [(group, several)]
        for part, run in parts:
            if hooks:
                with contextlib.closing(step_calls(stepper, part, run)) as calls:
                    yield from map(self._with_retry, calls)
            else:
                last = Later(functools.partial(part.__getitem__, -1))
                call = StepCall(functools.partial(run_group, stepper, part, run), len(part), last)
                yield self._with_retry(call)

    def _groups(self, epoch: int, *, streamed: bool) -> Iterator[Sequence[Batch] | StreamedGroup]:
        """Yield the batches of a pass in groups that may run together."""
        batches = self._feed.batches(held=True, ahead=self._may_group)
        for _ in range(self._skip):
            next(batches, None)
        self._skip = 0

        def stream_limit(size: int) -> int:
            return 1 if self._samples_after(self._step) else self._group_limit(size, MAX_STREAMED_STEPS)

        groups = grouped(
            batches, self._group_limit, usual=self._usual_group_size, streamed=stream_limit if streamed else None
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

    def _group_limit(self, batch_bytes: int, max_steps: int = MAX_STEPS) -> int:
        """Return how many steps may run in a call from the present step on."""
        free = self._callbacks.free_steps(self._context)
        if free == 1 or not execution.current.graph_mode:
            return 1
        unobserved = self._unobserved_steps(self._step, sampled=self._samples_after(self._step))
        return int(min(free, max(unobserved, 1), self._stepper.steps_per_call.estimate(batch_bytes, max_steps)))

    def _usual_group_size(self, batch_bytes: int) -> int:
        """Return how many steps run in a call where none of them must be observed from outside."""
        return self._stepper.steps_per_call.estimate(batch_bytes) if self._may_group else 1

    @property
    def _may_group(self) -> bool:
        """Whether steps may run in groups: nothing needs control after every single step."""
        uncontrolled = not self._callbacks.needs_control and self._train_step.host_manager is None
        return uncontrolled and execution.current.graph_mode

    # ---- sink feed --------------------------------------------------------------------------------------------
    def _sink_calls(self, epoch: int) -> _Calls:
        """Yield the calls of an epoch in sink feed: one, or one per step where a hook is called for each step."""
        count = self._sink.epoch_size  # type: ignore[union-attr]
        steps = 1 if self._callbacks.one_step_calls else count
        for _ in range(count // steps):
            yield StepCall(functools.partial(self._sink_call, steps, epoch), steps)
            if self._stopped(in_epoch=True):
                return

    def _sink_data(self, skip: int, done: int) -> SinkData:
        training = self._training
        return SinkData(self._feed, skip, epochs=training.epoch - done, sink_size=training.sink_size)

    def _sink_call(self, count: int, epoch: int) -> CallResult:
        """Run `count` steps; in several compiled calls if a pass ends, or the host must see a step, in between."""
        sink: SinkData = self._sink  # type: ignore[assignment]
        parts: list[StepRecords] = []
        done = 0
        while done < count:
            try:
                step = self._step + done
                samples = self._samples_after(step)
                # A compiled loop that reads the dataset itself shows no batch before its steps run.
                peek = samples and not backend.GROUPS.reads
                batch, result = sink.run(
                    self._stepper, self._step_call(), count - done, self._unobserved_steps(step, sampled=peek), epoch,
                    before=functools.partial(self._sample, step=step + 1) if samples else None,
                    at_overflow=self._after_overflow if self._ends_at_overflow else None,
                )
            except backend.RefusedBatch as error:
                error.index += done
                raise
            except data_backend.EndOfStream:
                raise _ended_early("before that", sink.size, epoch) from None
            done += len(result.records)
            parts.append(result.records)
            self._after_steps(result.records, self._step + done, batch)
        return CallResult(parts[0] if len(parts) == 1 else StepRecords.joined(parts), result.outputs)

    # ---- single steps -----------------------------------------------------------------------------------------
    def _samples_after(self, done: int) -> bool:
        """Whether a callback samples the batch of the step after `done` steps, before that step runs."""
        return not self._callbacks.steps_to_sample(done)

    def _sample(self, batch: Batch, step: int) -> None:
        """Call the sample hooks for a batch before it is trained on; `step` is the number of its step."""
        measure = functools.partial(self._sampler, batch)
        with self._arguments._lent(cur_step_num=step, train_dataset_element=batch, measure_ranges=measure):
            self._callbacks.on_train_sample(self._context)

    def _step_call(self) -> Callable[[Batch], CallResult]:
        """Return the function that trains on the batch of a step."""
        if self._first_scale is not None and not self._first_scale.done:
            return self._first_scale.step
        if self._retries:
            return functools.partial(step_with_retries, self._stepper, self._train_step.state)
        return self._stepper.step

    def _with_retry(self, call: StepCall) -> StepCall:
        """Return a call whose last step is retried if it overflows."""
        if not self._retries:
            return call

        def with_retry() -> CallResult:
            result = call.run()
            return self._after_overflow(now(call.batch), result) if result.records.overflow[-1] else result

        return dataclasses.replace(call, run=with_retry)

    def _after_overflow(self, batch: Batch, result: CallResult) -> CallResult:
        """Retry the last step of a call, which overflowed, if retries are on; return the result of the call."""
        if not self._retries:
            return result
        *before, last = result.records.each()
        retried = step_with_retries(
            self._stepper, self._train_step.state, batch, CallResult(last, result.outputs)
        )
        return CallResult(StepRecords.joined([*before, retried.records]), retried.outputs)

    @property
    def _ends_at_overflow(self) -> bool:
        """Whether a call of several steps must end at the first that overflows."""
        return self._retries or self._callbacks.has_overflow_hooks

    # ---- after steps ------------------------------------------------------------------------------------------
    def _unobserved_steps(self, done: int, *, sampled: bool = False) -> int:
        """Return how many steps may run, after `done`, before one whose batch or results the host must see.

        `done`: Number of steps so far. `sampled`: Whether callbacks sample the first of these batches before the steps
        run.
        """
        if self._first_scale is not None and not self._first_scale.done:
            return 0
        # Until the guard may end the run, a callback samples a batch, or a user's manager sets the scale.
        free = math.inf if self._guard is None else self._guard.free_steps
        to_sample = 1 + self._callbacks.steps_to_sample(done + 1) if sampled else self._callbacks.steps_to_sample(done)
        return int(min(free, to_sample, sys.maxsize if self._train_step.host_manager is None else 1))

    def _after_steps(self, records: StepRecords, step: int, batch: Batch | None) -> None:
        """Update a user's loss-scale manager, call the overflow hooks and check the overflow guard, in this order.

        `records`: The results of the steps. `step`: Number of the last step. `batch`: The batch of the last step; None
        where none of the steps can end the run.
        """

        def last_batch() -> Batch:
            return self._feed.first() if batch is None else now(batch)  # type: ignore[no-any-return]

        manager = self._train_step.host_manager
        if manager is not None:
            for overflow in records.overflow:
                manager.update_loss_scale(bool(overflow))
            self._train_step.scale.variable.assign(float(manager.get_loss_scale()))  # type: ignore[union-attr]
        if self._callbacks.has_overflow_hooks:
            self._recent.append(records.scalars())
        found: list[Finding] = []  # By callbacks that have explained the last step.
        if self._callbacks.has_overflow_hooks and batch is not None and records.overflow[-1]:
            last = records.each()[-1]
            explain = functools.partial(self._diagnosis, now(batch), float(last.loss_scale[0]), last.non_finite_counts)
            fields = {"cur_step_num": step, "train_dataset_element": batch, "step_results": last}
            with self._arguments._lent(**fields, explain_overflow=explain, _recent=self._recent, _found=found):
                self._callbacks.on_train_overflow(self._context)
        # Last, as the guard may end the run: monitors have then seen its last overflow.
        if self._guard is not None:
            self._guard.after(records, step, last_batch, found)

    def _evaluate_after(self, epoch: int) -> dict[str, Any]:
        """Evaluate where it is due after an epoch of `fit`; return the values by their names in the history."""
        evaluation, arguments = self._evaluation, self._arguments
        if evaluation is None or not self._training.evaluates_after(epoch):
            return {}

        def run(*callback_state: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            return evaluate(evaluation, *callback_state), dict(arguments.eval_results)

        values, results = self._callbacks.evaluating(run, **evaluation.fields())
        arguments._set(metrics=values, eval_results=results)
        return {f"val_{name.removeprefix('eval_')}": value for name, value in results.items()}


def _ended_early(when: str, size: int, epoch: int) -> RuntimeError:
    return RuntimeError(
        f"Model.train: the dataset must give the {size} batches that it counts; in epoch {epoch} it ended {when}. "
        "Look at its __len__ or its generator."
    )
