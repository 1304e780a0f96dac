"""`Model`: trains, evaluates and runs a network with its loss, optimizer, metrics and precision."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn, overload

import keras

from mixtrain import backend, checks, execution
from mixtrain.diagnostics.report import report_html
from mixtrain.dtype import DType
from mixtrain.lazy_names import serve_names
from mixtrain.loss_scale.manager import LossScaleManager
from mixtrain.loss_scale.rule import BAD_STEP_MAX
from mixtrain.metrics.factory import MetricsLike
from mixtrain.network.keras_own import own_steps
from mixtrain.precision.half_storage import HalfStorage
from mixtrain.precision.levels import AmpLevel, check_level
from mixtrain.precision.master_weights import LowPrecisionUpdate
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.step.optimizer_driver import named_optimizer
from mixtrain.step.scaling_choice import LEVEL_DEFAULT, unwrap_loss_scale_optimizer
from mixtrain.train.callback.callback import CallbacksLike
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.callback.overflow_monitor import OverflowMonitor, OverflowRecord
from mixtrain.train.columns import check_columns, network_inputs
from mixtrain.train.compiled import CompileArguments, compile_network
from mixtrain.train.compiled_networks import CompiledNetworks
from mixtrain.train.deviations import Deviations
from mixtrain.train.evaluation import Evaluation, EvaluationMetrics, evaluate, output_indexes
from mixtrain.train.feed import Feed
from mixtrain.train.first_scale import check_retries
from mixtrain.train.history import EpochHistory
from mixtrain.train.keras_calls import KerasCalls, epochs_and_data, keras_arguments_of_fit
from mixtrain.train.loop import TrainingLoop
from mixtrain.train.lost_updates import LostUpdates
from mixtrain.train.model_check import ModelCheck, checked_step
from mixtrain.train.model_metrics import model_metrics
from mixtrain.train.networks import Networks, checked_accumulation
from mixtrain.train.one_thread import use_of
from mixtrain.train.own_steps import OwnSteps, refuse_options
from mixtrain.train.plan_in_force import PrecisionOptions
from mixtrain.train.progress import Verbose, as_list
from mixtrain.train.report_data import LastRun, report_data
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.train.training import Training
from mixtrain.train.training_metrics import TrainingMetrics
from mixtrain.train.watch import Watch
from mixtrain.typing import DatasetLike, LossFn, Network, Optimizer, TensorLike, Tree


class Model(KerasCalls):
    """Trains, evaluates and runs a network in a precision that can be seen and controlled.

    Args:
        network: A Cell or a Keras model. A Cell without `optimizer` is its own train step. A compiled Keras model
            provides its loss, optimizer and metrics where they are not passed; one that overrides `compute_loss`
            computes its loss with it.
        loss_fn: A Cell, a Keras loss or its name, or a function, called with ``(y_true, y_pred)`` or ``(outputs,
            label)`` by the names of its parameters, else in the order of the network's library; or a dict of these by
            output name, or a list. If None, a Cell returns its loss and a Keras model adds it (`add_loss`).
        optimizer: A mixtrain or Keras optimizer, or a Keras optimizer's name. A Keras `LossScaleOptimizer` is
            unwrapped; its scale and window make a dynamic manager where no manager is passed.
        metrics: A dict of metrics by name, or a set or list of names and metrics.
        eval_network: Returns the inputs of the metrics; by default ``(loss, outputs, label)``.
        eval_indexes: Which outputs of `eval_network` are the loss, the prediction and the label.
        amp_level: "O0" (as it is), "O1" (matrix products in half), "O2" (all but normalization in half), "O3" (all in
            half) or "auto" (what suits the device).
        loss_scale_manager: A manager, None for no loss scaling; by default a dynamic one for O2 in float16.
        keep_batchnorm_fp32: Whether normalization is kept in float32; None for the level's rule.
        cast_model_type: The half-precision dtype, float16 or bfloat16; None for float16. "float8": bfloat16, with the
            products of dense layers between the first and the last layer in float8; "float8_delayed": the same, scaled
            by the largest magnitudes of earlier steps, as Keras's float8 layers are.
        boost_level: "O0"; MindSpore's boost mode is not supported.
        bad_step_max: Maximum number of consecutive overflows before training stops.
        explain_overflow: True: an `OverflowMonitor` reports, for every skipped step, which layer overflowed and which
            loss scale would be small enough; see `overflows`. Without a manager, steps that are not finite are skipped
            too, at a constant loss scale of 1. Layers that are far from float32 without an overflow are named once, on
            the first batch and every ten epochs. True and None: one warning, in the first epoch, of weights that half
            precision keeps from moving. False: none of these.
        on_overflow: "skip": skip a batch whose gradients overflow; "retry": run it again at the smaller loss scale, a
            few times at most, so that it is not lost. "retry" needs a dynamic manager.
        loss_weights: Factor of the loss, or of the loss of each output.
        sample_weight: Whether a batch's third column is its sample weights.
        weighted_metrics: Keras metrics that use the sample weights too, in the forms of `metrics`.
        accumulate_steps: Batches per update; an overflow in one rejects all. An epoch's last window may be shorter.
        master_weights: None: weights are stored in float32. At O2 and O3, those of layers that compute in half may be
            stored in half: True with float32 copies, which the optimizer updates; False without.
        low_precision_update: How updates of weights stored in half without copies are rounded: "stochastic" (None with
            ``master_weights=False``), "compensated", with the rests in half, or "nearest" (None in Keras's own layers).
        loss: Keras's name of `loss_fn`.

    Raises:
        TypeError: An argument of the wrong kind.
        ValueError: An unknown level; arguments that do not go together.

    Example:
        >>> import numpy as np, mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(2, 1)
        >>> model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), amp_level="O2")
        >>> batches = [(np.ones((4, 2), np.float32), np.ones((4, 1), np.float32))]
        >>> history = model.train(3, batches, verbose=0)
        >>> len(history["loss"])
        3
    """

    def __init__(
        self, network: Network, loss_fn: LossFn | None = None, optimizer: Optimizer | str | None = None,
        metrics: MetricsLike | None = None, eval_network: Network | None = None,
        eval_indexes: Sequence[int] | None = None, amp_level: AmpLevel = "O0", *,
        loss_scale_manager: LossScaleManager | None | Any = LEVEL_DEFAULT, keep_batchnorm_fp32: bool | None = None,
        cast_model_type: DType | str | None = None, boost_level: str = "O0", bad_step_max: int = BAD_STEP_MAX,
        explain_overflow: bool | None = None, on_overflow: Literal["skip", "retry"] = "skip", loss_weights: Any = None,
        sample_weight: bool = False, weighted_metrics: MetricsLike | None = None, accumulate_steps: int = 1,
        master_weights: bool | None = None, low_precision_update: LowPrecisionUpdate | None = None,
        loss: LossFn | None = None, **unknown: NoReturn,
    ) -> None:
        checks.keywords("Model", unknown, type(self))
        checks.one_of("Model", "boost_level", boost_level, ("O0",))
        if loss is not None and loss_fn is not None:
            raise checks.fail_value("Model", "loss is Keras's name of loss_fn, so one is passed", loss, "loss_fn alone")
        # What `compile` keeps.
        self._options = {
            "eval_network": eval_network, "eval_indexes": eval_indexes, "amp_level": amp_level,
            "loss_scale_manager": loss_scale_manager, "keep_batchnorm_fp32": keep_batchnorm_fp32,
            "cast_model_type": cast_model_type, "bad_step_max": bad_step_max, "explain_overflow": explain_overflow,
            "on_overflow": on_overflow, "sample_weight": sample_weight, "accumulate_steps": accumulate_steps,
            "master_weights": master_weights, "low_precision_update": low_precision_update,
        }
        given = CompileArguments(loss_fn if loss is None else loss, loss_weights, optimizer, metrics, weighted_metrics)
        in_keras_loop = own_steps(network)
        # Keras's own loop compiles the loss and metrics, and applies the optimizers.
        chosen = CompileArguments() if in_keras_loop else given.or_compiled(network)
        optimizer, loss_fn = chosen.optimizer, chosen.loss_fn
        optimizer = named_optimizer(optimizer) if isinstance(optimizer, str) else optimizer
        optimizer, loss_scale_manager = unwrap_loss_scale_optimizer(optimizer, loss_scale_manager)
        self._compile_arguments = dataclasses.replace(chosen, optimizer=optimizer)
        named = model_metrics(network, loss_fn, chosen.metrics, chosen.weighted_metrics)
        in_keras = isinstance(network, keras.Layer)
        if named and eval_network is None and loss_fn is None and not in_keras:
            raise checks.fail_value(
                "Model", "metrics need a loss_fn or an eval_network", list(named), "Model(network, loss_fn, ...)"
            )
        indexes = output_indexes(eval_indexes, eval_network)
        keras_network = network if in_keras and eval_network is None else None
        self._metrics = EvaluationMetrics(named, indexes, shows_tensors=not in_keras, network=keras_network)
        self._bad_step_max = checks.integer("Model", "bad_step_max", bad_step_max, at_least=1, example=1000)
        if explain_overflow is not None:
            checks.boolean("Model", "explain_overflow", explain_overflow)
        self._monitor = OverflowMonitor() if explain_overflow else None
        self._last_run = LastRun()
        if keep_batchnorm_fp32 is not None:
            checks.boolean("Model", "keep_batchnorm_fp32", keep_batchnorm_fp32)
        check_level("Model", amp_level)
        storage = HalfStorage.checked("Model", master_weights, low_precision_update)
        options = PrecisionOptions(amp_level, keep_batchnorm_fp32, cast_model_type, storage)
        observer = TrainingMetrics(named if eval_network is None else {}, network)
        self._own: OwnSteps | None = None
        chosen_manager = loss_scale_manager
        if in_keras_loop:
            refuse_options(in_keras_loop, self._options)
            loss_scale_manager, sample_weight = LEVEL_DEFAULT, False
        self._networks = Networks(
            network, loss_fn, optimizer, eval_network, options, loss_scale_manager, chosen.loss_weights, sample_weight,
            observer, checked_accumulation(accumulate_steps, optimizer, on_overflow), bool(explain_overflow),
        )
        if in_keras_loop:
            self._own = OwnSteps(
                self._networks, given, options, chosen_manager, self._bad_step_max, explains=bool(explain_overflow)
            )
        watched = explain_overflow is not False and self._own is None
        self._watches: list[Watch] = [LostUpdates(self._networks)] if watched else []
        if explain_overflow and watched:
            self._watches.append(Deviations(self._networks))
        self._retries = checks.one_of("Model", "on_overflow", on_overflow, ("skip", "retry")) == "retry"
        if self._retries and isinstance(self._networks.manager, LossScaleManager):
            check_retries(self._networks.manager)
        self._compiled = CompiledNetworks(self._networks)
        self._use = use_of(network)
        self._execution: dict[str, Any] = {}
        # Ends with this Model: a network that outlives it gets its own precision back.
        self._lease = self._networks.precision.lease()
        if self._networks.built:
            self._networks.precision.apply()
            if self._own is None:
                self._networks.step  # noqa: B018  (built now, so that its errors are raised here)

    @property
    def train_network(self) -> Network:
        """The cell that trains on a batch."""
        if self._own is not None:
            return self._networks.network
        return self._lease.with_cell(self._networks.train_network, self._networks.network)

    @property
    def eval_network(self) -> Network:
        """The cell whose outputs the metrics are computed from; None without metrics."""
        return self._networks.eval_network if self._metrics.named else None

    @property
    def predict_network(self) -> Network:
        """The network that predicts, as passed."""
        return self._networks.network

    @property
    def loss_scale_manager(self) -> LossScaleManager | None:
        """The loss-scale manager in use; its `get_loss_scale` is the live value."""
        return self._networks.manager if self._own is None else self._own.loss_scale_manager

    @property
    def overflows(self) -> list[OverflowRecord]:
        """The skipped steps of the last run, each with its diagnosis; empty without ``explain_overflow=True``."""
        return [] if self._monitor is None else self._monitor.records

    def precision_report(self) -> PrecisionPlan:
        """Return which layer computes in which dtype and why; printed, it is a table.

        Example:
            >>> import mixtrain.nn as nn
            >>> Model(nn.Dense(2, 1), amp_level="O3").precision_report().row("").compute_dtype
            mixtrain.float16
        """
        self._networks.precision.apply()
        plan = self._networks.precision.plan
        return plan if self._own is None else self._own.noted(plan)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page about the last run: facts, plan, curves of losses and metrics, overflows, ranges, advice.

        Args:
            path: The file. If it ends in ".json", only the data, which ``python -m mixtrain report`` renders.

        Example:
            >>> import pathlib, tempfile, mixtrain.nn as nn
            >>> page = pathlib.Path(tempfile.mkdtemp(), "report.html")
            >>> Model(nn.Dense(2, 1), amp_level="O3").report(page)
            >>> page.read_text(encoding="utf-8")[:15]
            '<!DOCTYPE html>'
        """
        data = report_data(self._networks.network, self.precision_report(), self._last_run)
        as_json = os.fspath(path).endswith(".json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(data, indent=1) if as_json else report_html(data))

    def check(self, dataset: DatasetLike) -> ModelCheck:
        """Try a step on the first batch, without training, and return what to expect; printed, it is a page of text.

        It has the plan, the deviation of the loss and the gradients from one float32 pass, the headroom of each tensor,
        the loss scale, and the memory of a step. Weights, optimizer, random states and loss scale are as before.

        Args:
            dataset: Batches, as for `train`.

        Raises: As `train`.

        Example: ``print(model.check(dataset))`` before hours of training.
        """
        with self._ready_for("Model.check", dataset) as feed:
            return checked_step(self._networks, self._compiled, feed.first())

    def train(
        self, epoch: int, train_dataset: DatasetLike, callbacks: CallbacksLike | None = None,
        dataset_sink_mode: bool = False, sink_size: int = -1, initial_epoch: int = 0, *, verbose: Verbose = "auto",
        resume: str | os.PathLike[str] | None = None, **unknown: NoReturn,
    ) -> EpochHistory:
        """Train for some epochs.

        Args:
            epoch: Number of the last epoch.
            train_dataset: Batches ``(data, label)``: a mixtrain dataset, `tf.data.Dataset`, `keras.utils.PyDataset`,
                or a list of batches. Without a `loss_fn`, the columns are the network's inputs.
            callbacks: A callback or a list of them, mixtrain's and Keras's.
            dataset_sink_mode: Whether a call of the compiled step runs `sink_size` steps instead of one.
            sink_size: Steps in such a call; -1 for the epoch.
            initial_epoch: Epochs that were already trained.
            verbose: "auto": a progress bar on a terminal, one line per epoch elsewhere, nothing where a callback
                prints the loss; 0: nothing; 1: a bar; 2: lines.
            resume: A directory of checkpoints. The run continues from the newest complete one, also in the middle of
                an epoch, as if it had never stopped; from the beginning without one. See `load_latest_checkpoint`.

        Returns:
            "loss" per epoch; with loss scaling "loss_scale" and "skipped_steps" too.

        Raises:
            TypeError: An argument of the wrong kind.
            ValueError: A number out of range, a dataset that is empty or does not have two columns.
            LossScaleExhausted: Steps kept overflowing.
        """
        checks.keywords("Model.train", unknown, self.train, self.fit)
        options = (callbacks, dataset_sink_mode, sink_size, initial_epoch, verbose, resume, self._networks.dicts)
        if self._own is not None:
            return self._own.fit("Model.train", (epoch, train_dataset, None, 1), None, options, [self._last_run])
        with self._loop(Training("Model.train", epoch, train_dataset, *options)) as loop:
            return loop.run()

    @overload
    def fit(
        self, epoch: int, train_dataset: DatasetLike, valid_dataset: DatasetLike | None = None,
        valid_frequency: int | Sequence[int] = 1, callbacks: CallbacksLike | None = None,
        dataset_sink_mode: bool = False, valid_dataset_sink_mode: bool = False, sink_size: int = -1,
        initial_epoch: int = 0, *, verbose: Verbose = "auto", resume: str | os.PathLike[str] | None = None,
    ) -> EpochHistory: ...

    @overload
    def fit(
        self, x: Tree, y: Tree | None = None, batch_size: int | None = None, epochs: int = 1, *,
        callbacks: CallbacksLike | None = None, dataset_sink_mode: bool = False, sink_size: int = -1,
        initial_epoch: int = 0, verbose: Verbose = "auto", resume: str | os.PathLike[str] | None = None,
        validation_split: float | None = None, validation_data: Any = None, validation_batch_size: int | None = None,
        validation_steps: int | None = None, validation_freq: int | Sequence[int] = 1, shuffle: bool | None = None,
        class_weight: Mapping[int, float] | None = None, sample_weight: TensorLike | None = None,
        steps_per_epoch: int | None = None,
    ) -> EpochHistory: ...

    def fit(  # type: ignore[misc]  # The names of Keras's arguments are those of the second overload.
        self, epoch: Any = None, train_dataset: Any = None, valid_dataset: Any = None, valid_frequency: Any = 1,
        callbacks: CallbacksLike | None = None, dataset_sink_mode: bool = False,
        valid_dataset_sink_mode: bool = False, sink_size: int = -1, initial_epoch: int = 0, *,
        verbose: Verbose = "auto", resume: str | os.PathLike[str] | None = None, **keras_arguments: Any,
    ) -> EpochHistory:
        """Train, evaluating between epochs: ``fit(epoch, train_dataset)`` or Keras's ``fit(x, y, batch_size, epochs)``.

        Args:
            epoch, train_dataset: As in `train`.
            valid_dataset: The dataset to evaluate on; None for no evaluation.
            valid_frequency: Evaluate every so many epochs, or after the epochs in this list (from 1).
            callbacks: As in `train`; their evaluation hooks are called too.
            dataset_sink_mode, sink_size, initial_epoch, verbose, resume: As in `train`.
            valid_dataset_sink_mode: Accepted; evaluation is always fed from the host.
            x: An array, a structure of arrays, or a dataset of batches.
            y: Labels; None where `x` is a dataset.
            batch_size: Rows of a batch of arrays; None for 32.
            epochs: Number of the last epoch.
            validation_split: Fraction of the rows of arrays to validate on, the last ones; None for none.
            validation_data: ``(x, y)``, ``(x, y, sample_weight)`` or a dataset.
            validation_batch_size: Rows of a validation batch; None for `batch_size`.
            validation_steps: Batches of an evaluation; None for all.
            validation_freq: As `valid_frequency`.
            shuffle: Whether to shuffle rows of arrays, or batches of a `PyDataset`, before each epoch; None for True.
            class_weight, sample_weight: A weight for the rows of each class, or for each row.
            steps_per_epoch: Batches of an epoch, which starts where the last one ended; None for all.

        Returns:
            As `train`, and "val_loss" and "val_..." for each metric.

        Raises:
            TypeError: As `train`; or arguments of both styles.
            ValueError: As `train`; or a validation dataset with neither metrics nor a loss.

        Example:
            >>> import numpy as np, mixtrain
            >>> network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
            >>> model = mixtrain.Model(network, "mse", "sgd")
            >>> history = model.fit(np.ones((8, 2)), np.ones((8, 1)), batch_size=4, epochs=2, verbose=0)
            >>> len(history.history["loss"])
            2

        Source: MindSpore, `mindspore.train.Model.fit`; Keras, `keras.Model.fit`.
        """
        checks.keywords("Model.fit", keras_arguments, self.fit)
        checks.boolean("Model.fit", "valid_dataset_sink_mode", valid_dataset_sink_mode)
        first = (epoch, train_dataset, valid_dataset, valid_frequency)
        named = keras_arguments_of_fit(first, keras_arguments)
        options = (callbacks, dataset_sink_mode, sink_size, initial_epoch, verbose, resume, self._networks.dicts)
        if self._own is not None:
            return self._own.fit("Model.fit", first, named, options, [self._last_run])
        if named is not None:
            first = epochs_and_data(self._networks, **named)
        epoch, dataset, *validation = (*first, named is not None)
        with self._loop(Training("Model.fit", epoch, dataset, *options, *validation)) as loop:
            return loop.run()

    @contextlib.contextmanager
    def _loop(self, training: Training) -> Iterator[TrainingLoop]:
        """Build the networks; yield the loop of a run."""
        networks, where, dataset = self._networks, training.where, training.valid_dataset
        in_keras_style = training.in_keras_style
        with self._used(where):
            evaluation = None if dataset is None else self._evaluation(where, dataset, in_keras_style=in_keras_style)
            networks.check_trains(where)
            training = dataclasses.replace(training, joint=networks.joint)
            feed, skip = training.feed_after(training.initial_epoch)
            self._make_ready(where, feed, in_keras_style=in_keras_style)
            compile_network(networks.network, self._compile_arguments)
            execution.warn_missing_device(backend.describe_device().kind)
            monitors = [self._last_run] if self._monitor is None else [self._last_run, self._monitor]
            watches = [watch for watch in self._watches if watch.active]
            training = dataclasses.replace(training, callbacks=[*as_list(training.callbacks), *watches, *monitors])
            yield TrainingLoop(
                training, networks, self._compiled, feed, skip, bad_step_max=self._bad_step_max,
                retries=self._retries, evaluation=evaluation,
            )

    def _make_ready(self, where: str, feed: Feed, *, in_keras_style: bool = False) -> None:
        """Check the columns of a training dataset, and build the networks for its batches."""
        check_columns(where, self._networks, feed, training=True, in_keras_style=in_keras_style)
        self._networks.build(*network_inputs(self._networks, feed.example(), training=True))

    @contextlib.contextmanager
    def _ready_for(self, where: str, dataset: DatasetLike) -> Iterator[Feed]:
        """Build the networks and set them to training, to run steps and undo them; yield the dataset's feed."""
        self._networks.check_trains(where)
        self._networks.check_alone(where)
        feed = Feed(dataset, where, dicts=self._networks.dicts)
        with self._used(where):
            self._make_ready(where, feed)
            self._compiled.train_mode.set(True)
            yield feed

    # ---- evaluation and prediction ------------------------------------------------------------------------------
    def eval(
        self, valid_dataset: DatasetLike, callbacks: CallbacksLike | None = None, dataset_sink_mode: bool = False,
        **unknown: NoReturn,
    ) -> dict[str, Any]:
        """Evaluate the metrics on a dataset.

        Args:
            valid_dataset: Batches, as for `train`.
            callbacks: A callback or a list of them.
            dataset_sink_mode: Accepted; evaluation is always fed from the host.

        Returns:
            The metrics' values by name; without metrics the mean "loss".

        Raises:
            ValueError: The Model has neither metrics nor a loss, or the dataset is empty.
        """
        checks.keywords("Model.eval", unknown, self.eval, self.evaluate)
        checks.boolean("Model.eval", "dataset_sink_mode", dataset_sink_mode)
        if self._own is not None:
            return self._own.eval(valid_dataset, callbacks)
        with self._used("Model.eval"):
            evaluation = self._evaluation("Model.eval", valid_dataset)
            return self._evaluated(evaluation, callbacks, dataset_sink_mode=dataset_sink_mode)[0]

    def _evaluation(self, where: str, dataset: DatasetLike, *, in_keras_style: bool = False) -> Evaluation:
        feed = Feed(dataset, where, dicts=self._networks.eval_dicts, joint=self._networks.joint)
        check_columns(where, self._networks, feed, training=False, in_keras_style=in_keras_style)
        weighted = in_keras_style and len(feed.example()) == 3
        return self._compiled.evaluation(where, feed, self._metrics, weighted=weighted)

    def _evaluated(
        self, evaluation: Evaluation, callbacks: CallbacksLike | None, *, dataset_sink_mode: bool = False
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run an evaluation; return its values, and those that callbacks see, which always have the loss."""
        fields = {"network": self._networks.network, "loss_fn": self._networks.loss_fn, **evaluation.fields()}
        arguments = CallbackArguments(
            mode="eval", dataset_sink_mode=dataset_sink_mode, shows_tensors=self._networks.of_cells, **fields
        )
        with CallbackList(callbacks, arguments) as callback_list:
            values = evaluate(evaluation, callback_list, RunContext(arguments), arguments)
        return values, dict(arguments.eval_results)

    def _evaluate_all(self, where: str, dataset: DatasetLike, callbacks: CallbacksLike | None) -> dict[str, Any]:
        with self._used(where):
            values, results = self._evaluated(self._evaluation(where, dataset, in_keras_style=True), callbacks)
        loss = results.get("eval_loss", values.get("loss"))
        rest = [name for name in values if name != "loss"]
        named = [name for name in rest if name in self._metrics.named]
        if any(name.endswith("_loss") for name in rest if name not in named):
            # Keras's order: with several outputs, the metrics come last, sorted by name.
            rest = [name for name in rest if name not in named] + sorted(named)
        return ({} if loss is None else {"loss": loss}) | {name: values[name] for name in rest}

    def build(
        self, train_dataset: DatasetLike | None = None, valid_dataset: DatasetLike | None = None, sink_size: int = -1,
        epoch: int = 1, sink_mode: bool = False,
    ) -> None:
        """Prepare the networks before the first step: build Keras layers, apply the precision, raise errors.

        Args:
            train_dataset: The shapes are those of its first batch.
            valid_dataset: Used where there is no `train_dataset`.
            sink_size, epoch, sink_mode: Accepted for MindSpore scripts.

        Raises:
            ValueError: Neither dataset is passed, or it does not fit the network.
        """
        dataset = valid_dataset if train_dataset is None else train_dataset
        if dataset is None:
            raise checks.fail_value("Model.build", "a dataset must be given", None, "model.build(train_dataset)")
        if self._own is not None:
            return self._own.make_ready("Model.build", dataset, batches=True)
        self._make_ready("Model.build", Feed(dataset, "Model.build", dicts=self._networks.dicts))


serve_names(__name__)
