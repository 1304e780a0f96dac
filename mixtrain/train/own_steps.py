"""`OwnSteps`: a Keras model with steps of its own, which Keras's loops run with prepared optimizers."""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import keras

from mixtrain import backend, checks
from mixtrain.dtype import DType
from mixtrain.keras import PreparedOptimizer
from mixtrain.keras.prepare import prepare_compiled
from mixtrain.network.keras_own import own_steps
from mixtrain.network.walk import all_built
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.step.optimizer_driver import named_optimizer
from mixtrain.step.output_losses import is_keras_loss
from mixtrain.train.callback.callback import Callback, CallbacksLike
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.callback.in_keras import HooksInKeras
from mixtrain.train.compiled import CompileArguments, keras_metrics
from mixtrain.train.feed import Feed
from mixtrain.train.history import EpochHistory
from mixtrain.train.keras_data import KerasData, is_dataset
from mixtrain.train.networks import Networks
from mixtrain.train.plan_in_force import PrecisionOptions
from mixtrain.train.progress import as_list, resolve_verbose
from mixtrain.train.run_context import CallbackArguments
from mixtrain.train.training import Training
from mixtrain.typing import DatasetLike

_BUILDING: Final = backend.JitChoice(False, "what is traced to build layers does not run")
# What else a Model offers than Keras's loop: the value that does without it, and what to write.
_OPTIONS: Final[dict[str, tuple[Any, str]]] = {
    "eval_network": (None, "a test_step"), "eval_indexes": (None, "a test_step"),
    "on_overflow": ("skip", 'on_overflow="skip"'),
    "accumulate_steps": (1, "gradient_accumulation_steps of the Keras optimizer"),
    "master_weights": (None, "it without master_weights"), "low_precision_update": (None, "weights in float32"),
}


def refuse_options(own: Sequence[str], options: Mapping[str, Any]) -> None:
    """Refuse options of a Model that would not hold where Keras's loop calls methods of the network, `own`."""
    for name, (default, write) in _OPTIONS.items():
        if options[name] != default:
            raise checks.fail_value(
                "Model", f"{name} is of mixtrain's own step, and the network has its own "
                f"{checks.join_names(own)}", options[name], write,
            )


class OwnSteps:
    """Trains, evaluates and runs a Keras model by its own steps.

    The model is compiled with the arguments that `Model` was given, if any, and its optimizers are prepared, as by
    `mixtrain.keras.prepare`, until the `Model` ends.

    `networks`: The network and the precision. `given`: The arguments of `compile` that `Model` was given. `options`:
    How precision is planned. `loss_scale_manager`, `bad_step_max`, `explains`: As `Model` was given them.

    Attributes:
        optimizers: The prepared optimizers, of the model's own and of each that scales; empty before the first run.
    """

    def __init__(
        self, networks: Networks, given: CompileArguments, options: PrecisionOptions, loss_scale_manager: Any,
        bad_step_max: int, explains: bool,
    ) -> None:
        self._networks, self._explains = networks, explains
        half = options.cast_model_type
        self._precision = {
            "amp_level": options.amp_level, "keep_batchnorm_fp32": options.keep_batchnorm_fp32,
            "cast_model_type": half.name if isinstance(half, DType) else half,
        }
        self._manager, self._bad_step_max = loss_scale_manager, bad_step_max
        self._network: keras.Model = networks.network
        self.optimizers: list[PreparedOptimizer] = []
        self._prepared: set[int] = set()  # What `_held` was then.
        self._undo: Callable[[], Any] = lambda: None
        self._traced = False  # Whether the layers that the train step calls were built by tracing it.
        # Keras's `compile` has an optimizer by default; a Model has none.
        self._trains = given.optimizer is not None or self._network.compiled
        _compile(self._network, given)

    def noted(self, plan: PrecisionPlan) -> PrecisionPlan:
        """Return a plan with a note of what does not hold where Keras's loop trains."""
        missing = "dataset_sink_mode and explain_overflow" if self._explains else "dataset_sink_mode"
        own = f"{checks.join_names(own_steps(self._network))} of {type(self._network).__name__}"
        note = f"trained by Keras's loop, for {own}: {missing} without effect"
        return dataclasses.replace(plan, notes=(*plan.notes, note))

    @property
    def optimizer(self) -> Any:
        """The optimizer that the model was compiled with, or None."""
        optimizer = getattr(self._network, "optimizer", None)
        return optimizer.inner_optimizer if isinstance(optimizer, PreparedOptimizer) else optimizer

    @property
    def scaled(self) -> list[PreparedOptimizer]:
        """The optimizers that scale losses."""
        return [optimizer for optimizer in self.optimizers if optimizer.scales]

    def fit(
        self, where: str, first: Sequence[Any], named: Mapping[str, Any] | None, options: Sequence[Any],
        monitors: list[Callback],
    ) -> EpochHistory:
        """Train by Keras's `fit`.

        `where`: The caller, for errors. `first`: epoch, train_dataset, valid_dataset and valid_frequency. `named`: The
        arguments by name of a call in Keras's style, else None. `options`: The other arguments of `Training`.
        `monitors`: Callbacks of the Model.

        Raises: ValueError if the run asks for what Keras's loop does not have.
        """
        data = _fit_data(where, first, named)
        epochs, dataset = first[:2] if named is None else (named.get("epochs", 1), data["x"])
        training = dataclasses.replace(Training(where, epochs, dataset, *options), in_keras_style=named is not None)
        if not self._trains:
            raise checks.fail_value(
                where, "the Model must have an optimizer to train", None, "Model(network, loss_fn, optimizer)"
            )
        if training.resume is not None:
            raise checks.fail_value(
                training.where, "a network with a train_step of its own is resumed by Keras", training.resume,
                "callbacks=[keras.callbacks.BackupAndRestore(directory)]",
            )
        self.make_ready(
            training.where, training.dataset, batches=not training.in_keras_style,
            for_step=lambda: _first_batch(training.where, training.dataset, data),
        )
        callbacks = as_list(training.callbacks)
        of_keras = [callback for callback in callbacks if isinstance(callback, keras.callbacks.Callback)]
        ours = [callback for callback in callbacks if callback not in of_keras]
        verbose = resolve_verbose(training.verbose, callbacks)
        arguments = CallbackArguments(
            mode="train", shows_tensors=False, network=self._network, train_network=self._network,
            loss_fn=self._network.loss, optimizer=self.optimizer,
            loss_scale_manager=self.loss_scale_manager, train_dataset=training.dataset,
            epoch_num=training.epoch - training.initial_epoch, cur_step_num=0, dataset_sink_mode=False, verbose=verbose,
        )
        with CallbackList([*ours, *monitors], arguments) as hooks:
            run = HooksInKeras(hooks, arguments, self.scaled, self._bad_step_max)
            kept = self._network.fit(
                **data, epochs=training.epoch, initial_epoch=training.initial_epoch, verbose=verbose,
                callbacks=[run, *of_keras],
            )
        history = EpochHistory(self._network, kept.params)
        for epoch in kept.epoch:
            history.add(epoch + (not training.in_keras_style), {})
        for name, value in [(name, value) for name, values in kept.history.items() for value in values]:
            history.add(history.epoch[-1], {name: value})
        return history

    @property
    def loss_scale_manager(self) -> Any:
        """The manager of the first optimizer that scales its loss, or None."""
        return self.scaled[0].loss_scale_manager if self.scaled else None

    def evaluate(
        self, where: str, data: Any, callbacks: CallbacksLike | None, *, batches: bool = False, **arguments: Any
    ) -> Any:
        """Evaluate on data by Keras's `evaluate`, with its arguments and result."""
        for callback in as_list(callbacks):
            checks.instance(
                where, "callbacks", callback, keras.callbacks.Callback, "a keras.callbacks.Callback: Keras evaluates"
            )
        self.make_ready(where, data, batches=batches)
        return self._network.evaluate(**arguments, callbacks=as_list(callbacks))

    def predict(self, *arguments: Any, **options: Any) -> Any:
        """Predict by Keras's `predict`, with its arguments and result."""
        self.make_ready("Model.predict", arguments[0], batches=False)
        return self._network.predict(*arguments, **options)

    def eval(self, dataset: DatasetLike, callbacks: CallbacksLike | None) -> dict[str, Any]:
        """Evaluate on batches; return the loss and metrics by name."""
        data = _data_for_keras("Model.eval", dataset, steps="steps")
        return self.evaluate(  # type: ignore[no-any-return]
            "Model.eval", dataset, callbacks, batches=True, **data, verbose=0, return_dict=True
        )

    @contextlib.contextmanager
    def unprepared(self) -> Iterator[None]:
        """Give the model the optimizers of its user inside the block, as to save it for plain Keras."""
        held = {name: value for name, value in vars(self._network).items() if isinstance(value, PreparedOptimizer)}
        for name, optimizer in held.items():
            setattr(self._network, name, optimizer.inner_optimizer)
        try:
            yield
        finally:
            for name, optimizer in held.items():
                setattr(self._network, name, optimizer)

    def make_ready(
        self, where: str, data: Any, *, batches: bool, for_step: Callable[[], Any] = lambda: None
    ) -> None:
        """Build the layers for batches or arrays, apply the plan, and prepare the optimizers that the model holds.

        `for_step`: Returns a batch of the train step, for layers that only it calls; None without one.
        """
        if not (self._traced or all_built(self._network)):
            batches = batches or is_dataset(data)
            inputs = Feed(data, where, dicts="inputs").example()[0] if batches else data
            cause: Exception | None = None
            try:
                self._networks.build_layers(inputs)
            except Exception as error:
                cause = error
            if not (all_built(self._network) or self._trace(for_step)):
                reason = "" if cause is None else f" ({type(cause).__name__})"
                raise checks.fail_value(
                    where, "the layers must be built before a plan is made, and a call of the network on its data does "
                    f"not build them{reason}", type(self._network).__name__,
                    "keras.Input(...) as the first layer of each part, or call each part once on a batch",
                ) from cause
        self._networks.precision.apply()
        if self._held() != self._prepared:
            self._undo()
            self.optimizers, undo = prepare_compiled("Model", self._network, self._precision, self._manager)
            self._prepared = self._held()
            finalizer = weakref.finalize(self, undo)
            finalizer.atexit = False
            self._undo = finalizer

    def _held(self) -> set[int]:
        """Return the identities of the optimizers that the model holds."""
        held = vars(self._network).values()
        return {id(value) for value in held if isinstance(value, keras.optimizers.Optimizer)}

    def _trace(self, for_step: Callable[[], Any]) -> bool:
        """Trace the train step, which runs nothing, as Keras's loop does on TensorFlow; return whether it could be.

        It builds the layers that it calls; others have nothing to train.
        """
        batch = None if backend.INLINES_COMPILED else for_step()
        if batch is not None:
            step = backend.compile_function(self._network.train_step, choice=_BUILDING)
            backend.trace_for(step, keras.tree.map_structure(keras.ops.convert_to_tensor, batch))
            self._traced = True
        return self._traced


def _first_batch(where: str, dataset: DatasetLike, data: Mapping[str, Any]) -> Any:
    """Return a batch as a step of Keras's loop takes it; None of a generator, whose batches are read once.

    `data`: The arguments of `fit`; arrays are among them, `dataset` is what the user passed as such.
    """
    if not is_dataset(data["x"]):
        arrays = KerasData(
            where, dataset, data.get("y"), data.get("sample_weight"), data.get("class_weight"), data.get("batch_size")
        )
        return keras.utils.pack_x_y_sample_weight(*next(iter(arrays.dataset())))
    if isinstance(dataset, Iterator):
        return None
    if isinstance(dataset, (list, tuple)) or hasattr(dataset, "pipeline_from"):
        return Feed(dataset, where, dicts="inputs").example()
    return dataset[0] if isinstance(dataset, keras.utils.PyDataset) else next(iter(dataset))


def _data_for_keras(
    where: str, dataset: DatasetLike, *, data: str = "x", steps: str = "steps_per_epoch"
) -> dict[str, Any]:
    """Return a dataset of batches as arguments of Keras, named `data`, and `steps` where it is read in turn.

    Raises: ValueError if the number of its batches is unknown, and Keras cannot read it itself.
    """
    if not isinstance(dataset, (list, tuple)) and not hasattr(dataset, "pipeline_from"):
        return {data: dataset}
    feed = Feed(dataset, where)
    if feed.size is None:
        raise checks.fail_value(
            where, "Keras's loop must know the number of batches", type(dataset).__name__, "a list of the batches"
        )
    read = feed.batches if hasattr(dataset, "pipeline_from") else lambda: map(_as_tuple, dataset)
    return {data: _endless(read), steps: feed.size}


def _fit_data(where: str, first: Sequence[Any], named: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the data of a call of `fit` as arguments of Keras's."""
    if named is not None:
        return {name: value for name, value in named.items() if name != "epochs"}
    _, train, valid, frequency = first
    # Of data that it cannot shuffle, Keras warns.
    data = {**_data_for_keras(where, train), "shuffle": False}
    if valid is not None:
        data |= _data_for_keras(where, valid, steps="validation_steps", data="validation_data")
        data["validation_freq"] = frequency
    return data


def _endless(read: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Yield the batches of one pass after another; Keras's loop ends epochs by their number."""
    while True:
        yield from read()


def _as_tuple(batch: Any) -> Any:
    """Return a batch as a generator must yield it for Keras: to `tf.data` a list is one tensor."""
    return tuple(map(_without_lists, batch)) if isinstance(batch, (list, tuple)) else (_without_lists(batch),)


def _without_lists(column: Any) -> Any:
    """Return a column with tuples in place of lists of tensors."""
    if isinstance(column, Mapping):
        return {name: _without_lists(part) for name, part in column.items()}
    several = isinstance(column, (list, tuple)) and any(hasattr(part, "shape") for part in keras.tree.flatten(column))
    return tuple(map(_without_lists, column)) if several else column


def _compile(network: keras.Model, given: CompileArguments) -> None:
    """Compile a model with the arguments that are given, if any."""
    name, optimizer = type(network).__name__, given.optimizer
    optimizer = named_optimizer(optimizer) if isinstance(optimizer, str) else optimizer
    if optimizer is not None:
        kind = keras.optimizers.Optimizer
        checks.instance("Model", "optimizer", optimizer, kind, "keras.optimizers.Adam(0.001)")
    arguments = {
        "optimizer": optimizer, "loss": given.loss_fn, "loss_weights": given.loss_weights,
        "metrics": _for_compile(given.metrics), "weighted_metrics": _for_compile(given.weighted_metrics),
    }
    arguments = {key: value for key, value in arguments.items() if value is not None}
    for what in ("loss", "metrics", "weighted_metrics"):
        value = arguments.get(what)
        of_keras = is_keras_loss(value, keras_network=True) if what == "loss" else keras_metrics(value) is not None
        if value is not None and not of_keras:
            raise checks.fail_value(
                "Model", f"{name} has steps of its own, so {what} must be as for its compile", value,
                f"{name}.compile(...) before, and Model(network)",
            )
    if not arguments:
        return
    if network.compiled:
        arguments.setdefault("optimizer", network.optimizer)
    try:
        network.compile(**arguments)
    except TypeError as error:
        raise checks.fail_value(
            "Model", f"compile of {name} takes other arguments ({error})", checks.join_names(arguments),
            "network.compile(...) before, and Model(network)",
        ) from None


def _for_compile(metrics: Any) -> Any:
    return sorted(metrics) if isinstance(metrics, (set, frozenset)) else metrics
