"""`KerasCalls`: methods of `keras.Model` for `Model`, with Keras's arguments and results."""

from __future__ import annotations

import contextlib
import dataclasses
import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

import keras
import numpy as np

from mixtrain import backend, boundary, checks, execution
from mixtrain.metrics.factory import MetricsLike
from mixtrain.network.keras_own import overrides
from mixtrain.precision.master_weights import updating_masters
from mixtrain.train.callback.callback import CallbacksLike
from mixtrain.train.compiled_networks import CompiledNetworks
from mixtrain.train.evaluation import EvaluationMetrics
from mixtrain.train.feed import Feed, as_batch
from mixtrain.train.keras_data import BATCH_SIZE, KerasData, is_dataset
from mixtrain.train.networks import Networks
from mixtrain.train.one_thread import OneThread
from mixtrain.train.progress import BAR, EvaluationProgress, as_list, evaluation_verbose
from mixtrain.train.saving import KerasSaving
from mixtrain.typing import Batch, DatasetLike, Layer, LossFn, Optimizer, Tensor, TensorLike, Tree


def keras_arguments_of_fit(first: tuple[Any, ...], keras_arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of a call of `fit` in Keras's style by name; None for one in MindSpore's.

    `first` holds MindSpore's epoch, train_dataset, valid_dataset and valid_frequency, which is 1 by default, or in the
    same positions Keras's x, y, batch_size and epochs. `keras_arguments` are Keras's by name.
    """
    passed = {name: value for name, value in keras_arguments.items() if value is not None}
    if "x" not in passed and (first[0] is None or isinstance(first[0], (numbers.Number, str))):
        if passed:
            raise TypeError(
                f"Model.fit: expected arguments of one style; got epoch={first[0]!r}, MindSpore's, and "
                f"{checks.join_names(passed)}, Keras's. Write fit(x, y, epochs=...) or fit(epoch, train_dataset, ...)."
            )
        return None
    by_name = {name: value for name, value in zip(("x", "y", "batch_size"), first, strict=False) if value is not None}
    if first[3] not in (None, 1):  # The default of valid_frequency, in the position of epochs.
        by_name["epochs"] = first[3]
    twice = [name for name in by_name if name in passed]
    if twice:
        raise TypeError(
            f"Model.fit: expected each argument once; got {checks.join_names(twice)} by position and by name. "
            "Write fit(x, y, batch_size=32, epochs=5)."
        )
    return passed | by_name


def as_predict_arguments(inputs: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the inputs and options of a call of `predict`, whose options may follow the only input by position."""
    # No network has a batch size, right or wrong, or nothing, as its second input.
    if len(inputs) < 2 or not (inputs[1] is None or type(inputs[1]) in (int, float)):
        return inputs, options
    by_position = dict(zip(options, inputs[1:], strict=False))
    twice = [name for name in by_position if options[name] not in (None, "auto")]
    if twice or len(by_position) < len(inputs) - 1:
        raise TypeError(
            f"Model.predict: expected x, batch_size, verbose, steps and callbacks, each once; got {len(inputs)} by "
            f"position and {checks.join_names(twice) or 'none'} also by name. Write predict(x, batch_size=32)."
        )
    return inputs[:1], options | by_position


def epochs_and_data(
    networks: Networks, x: Tree = None, y: Tree = None, batch_size: int | None = None, epochs: int = 1,
    validation_split: float | None = None, validation_data: Any = None, validation_batch_size: int | None = None,
    validation_steps: int | None = None, validation_freq: int | Sequence[int] = 1, shuffle: bool = True,
    class_weight: Mapping[int, float] | None = None, sample_weight: TensorLike | None = None,
    steps_per_epoch: int | None = None,
) -> tuple[Any, ...]:
    """Translate Keras's arguments of `fit` to epoch, dataset, valid_dataset and valid_frequency."""
    data = KerasData(
        "Model.fit", x, y, sample_weight, class_weight, batch_size, steps_per_epoch, shuffle is not False,
        continues=True, dicts=networks.dicts,
    )
    data, valid = _split_validation(data, validation_data, validation_split, validation_batch_size, validation_steps)
    valid = valid and dataclasses.replace(valid, dicts=networks.eval_dicts)
    return epochs, data.dataset(), valid and valid.dataset(), validation_freq


def _split_validation(
    data: KerasData, validation_data: Any, split: float | None, batch_size: int | None, steps: int | None
) -> tuple[KerasData, KerasData | None]:
    """Return the training data and the validation data.

    `validation_data` is ``(x, y)``, ``(x, y, sample_weight)``, a dataset, or None to validate on the fraction `split`.
    """
    if validation_data is None:
        if split is None or split == 0:
            return data, None
        data, last = data.split(split)
        x, y, weight = last.x, last.y, last.sample_weight
    elif is_dataset(validation_data):
        return data, KerasData(data.where, validation_data, steps=steps, keeps=True)
    elif isinstance(validation_data, (tuple, list)) and len(validation_data) in (2, 3):
        x, y, weight = (*validation_data, None)[:3]
    else:
        raise checks.fail_type(
            data.where, "validation_data must be (x, y), (x, y, sample_weight) or a dataset", validation_data,
            "validation_data=(x_val, y_val)",
        )
    return data, KerasData(data.where, x, y, weight, None, batch_size or data.batch_size, steps)


# What a Model has of its Keras network, by Keras's names.
_OF_NETWORK: Final = frozenset({
    "compute_mask", "compute_output_shape", "count_params", "dtype", "dtype_policy", "get_config", "get_layer", "input",
    "inputs", "input_names", "input_shape", "losses", "name", "non_trainable_variables", "non_trainable_weights",
    "output", "output_names", "output_shape", "outputs", "reset_metrics", "to_json", "trainable", "trainable_variables",
    "trainable_weights", "variables", "weights",
})


class KerasCalls(KerasSaving):
    """The methods of `keras.Model` for a `Model`: `evaluate`, `summary` and others."""

    _compiled: CompiledNetworks
    _metrics: EvaluationMetrics
    _options: dict[str, Any]
    _use: OneThread
    # The settings of `execution` that `compile` changed.
    _execution: dict[str, Any]

    def evaluate(
        self, x: Tree | None = None, y: Tree | None = None, batch_size: int | None = None, verbose: str | int = "auto",
        sample_weight: TensorLike | None = None, steps: int | None = None, callbacks: CallbacksLike | None = None,
        return_dict: bool = False, **unknown: NoReturn,
    ) -> Any:
        """Compute the loss and the metrics, with Keras's arguments; `eval` is MindSpore's.

        Args:
            x: An array, a structure of arrays, or a dataset of batches.
            y: Labels; None where `x` is a dataset.
            batch_size: Rows of a batch of arrays; None for 32.
            verbose: "auto": a bar on a terminal or in a notebook; 0: nothing; 1: a bar; 2: a line.
            sample_weight: A weight for each row.
            steps: Number of batches; None for all.
            callbacks: A callback or a list of them.
            return_dict: Whether the values come as a dict.

        Returns: The loss; with metrics a list, the loss first, or a dict by name with `return_dict`.

        Raises: TypeError if no data were given. ValueError if the Model has no loss, or the data do not fit together.

        Example: ``model.evaluate(x, y, batch_size=256)``.
        """
        checks.keywords("Model.evaluate", unknown, self.evaluate)
        if self._own is not None:
            return self._own.evaluate(
                "Model.evaluate", x, callbacks, x=x, y=y, batch_size=batch_size, sample_weight=sample_weight,
                steps=steps, verbose=verbose, return_dict=return_dict,
            )
        data = KerasData(
            "Model.evaluate", x, y, sample_weight, None, batch_size, steps, dicts=self._networks.eval_dicts
        )
        checks.boolean("Model.evaluate", "return_dict", return_dict)
        shown = evaluation_verbose("Model.evaluate", verbose)
        callbacks = [*as_list(callbacks), *([EvaluationProgress(bar=shown == BAR)] if shown else [])]
        values = self._evaluate_all("Model.evaluate", data.dataset(), callbacks)
        if "loss" not in values:
            raise checks.fail_value(
                "Model.evaluate", "the Model must have a loss", None, "Model(network, loss_fn, optimizer) or model.eval"
            )
        if return_dict:
            return values
        return list(values.values()) if len(values) > 1 else values["loss"]

    def _evaluate_all(self, where: str, dataset: DatasetLike, callbacks: CallbacksLike | None) -> dict[str, Any]:
        """Return the loss and the metrics of a dataset by name, the loss first."""
        raise NotImplementedError

    def predict(
        self, *inputs: TensorLike, x: TensorLike | None = None, batch_size: int | None = None,
        verbose: str | int = "auto", steps: int | None = None, callbacks: Any = None, backend: None = None,
    ) -> Tree:
        """Run the network in inference mode.

        Args:
            *inputs: The network's inputs: tensors or arrays, batch axis first; or for a Keras network one dataset, and
                after one input the other arguments, in Keras's order.
            x: The first of these by its name in Keras.
            batch_size: Rows of a batch of a Keras network; None for 32.
            verbose: "auto": a bar on a terminal or in a notebook; 0: nothing; 1 or 2: a bar. Of a Keras network.
            steps: Number of batches; None for all.
            callbacks: A Keras callback or a list of them, for a Keras network.
            backend: None: MindSpore's other value, "lite", is an inference engine of its own.

        Returns:
            The network's outputs, floats in float32. A Keras network with one argument runs batch by batch and returns
            NumPy arrays, as in Keras; a Cell, or an input that is a Tensor, gives Tensors; else backend tensors.

        Raises:
            TypeError: There is no input, or no batch; or batch options for a network that runs on all rows at once.

        Example:
            >>> import numpy as np, mixtrain, mixtrain.nn as nn
            >>> tuple(mixtrain.Model(nn.Dense(2, 3)).predict(np.ones((4, 2), np.float32)).shape)
            (4, 3)
        """
        if backend is not None:
            raise checks.fail_value("Model.predict", "backend must be None", backend, "model.predict(data)")
        inputs = inputs if x is None else (x, *inputs)
        if not inputs or inputs[0] is None or isinstance(inputs[0], str):
            raise checks.fail_type("Model.predict", "a batch must be given", inputs, "model.predict(data)")
        options = dict[str, Any](batch_size=batch_size, verbose=verbose, steps=steps, callbacks=callbacks or None)
        if isinstance(self._networks.network, keras.Layer):
            inputs, options = as_predict_arguments(inputs, options)
        if self._own is not None and len(inputs) == 1:
            return self._own.predict(inputs[0], **options)
        network = self._networks.network
        if len(inputs) == 1 and isinstance(network, keras.Model) and overrides(network, "predict_step"):
            self._networks.precision.apply()
            return network.predict(inputs[0], **options)
        values = inputs if is_dataset(inputs[0]) else keras.tree.flatten(inputs)
        as_tensors = self._networks.of_cells or any(isinstance(value, boundary.UserTensor) for value in values)
        if len(inputs) == 1 and not as_tensors:
            return self._predict_batches(inputs[0], **options)
        if any(options[name] is not None for name in options if name != "verbose") or is_dataset(inputs[0]):
            raise checks.fail_type(
                "Model.predict", "batches need a Keras network and one array, structure of arrays or dataset", inputs,
                "model.predict(data)",
            )
        outputs = self._run_rows(inputs)
        return boundary.to_tensors(outputs) if as_tensors else outputs

    def _run_rows(self, inputs: tuple[Tree, ...]) -> Tree:
        return self._run(keras.tree.map_structure(backend.to_tensor, as_batch(inputs, backend.refuse_unstorable)))

    def _run(self, inputs: tuple[Tree, ...]) -> Tree:
        with self._used("Model.predict"):
            return self._compiled.predict(inputs)

    @contextlib.contextmanager
    def _used(self, where: str) -> Iterator[None]:
        """Let this thread alone run the network, as `compile` said that it runs."""
        with self._use.of(where), execution.using(**self._execution):
            yield

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Print the `summary` of a Keras network, with its arguments; `precision_report` shows the layers' dtypes."""
        self._keras_network("summary", "print(network)").summary(*args, **kwargs)

    @property
    def layers(self) -> list[Layer]:
        """The Keras network's layers."""
        return list(self._keras_network("layers", "network.cells()").layers)

    @property
    def optimizer(self) -> Optimizer | None:
        """The optimizer as passed, or None."""
        return self._networks.optimizer if self._own is None else self._own.optimizer

    def get_weights(self) -> list[np.ndarray]:
        """Return the values of the Keras network's variables, float32, as `keras.Model.get_weights` does."""
        network = self._keras_network("get_weights", "network.parameters_dict()")
        return [backend.to_numpy(variable) for variable in network.weights]

    def set_weights(self, weights: Sequence[Tensor]) -> None:
        """Write the values of the Keras network's variables, one array for each, in the order of `get_weights`."""
        network = self._keras_network("set_weights", "mixtrain.load_param_into_net(network, values)")
        with updating_masters(network.weights):
            network.set_weights(weights)

    def train_on_batch(
        self, x: Tree, y: Tree | None = None, sample_weight: TensorLike | None = None,
        class_weight: Mapping[int, float] | None = None, return_dict: bool = False,
    ) -> Any:
        """Train on one batch of arrays; return its loss and metrics, with Keras's arguments and result.

        A dict has "loss_scale" and "skipped_steps" too where the loss is scaled.

        Example: ``loss, accuracy = model.train_on_batch(x, y)``.
        """
        weights = {"sample_weight": sample_weight, "class_weight": class_weight}
        history = self.fit(x, y, _rows(x), 1, shuffle=False, verbose=0, **weights)
        return _values({name: values[-1] for name, values in history.items()}, return_dict)

    def test_on_batch(
        self, x: Tree, y: Tree | None = None, sample_weight: TensorLike | None = None, return_dict: bool = False
    ) -> Any:
        """Evaluate one batch of arrays; return its loss and metrics, with Keras's arguments and result."""
        options: dict[str, Any] = {"sample_weight": sample_weight, "verbose": 0, "return_dict": True}
        return _values(self.evaluate(x, y, _rows(x), **options), return_dict)

    def predict_on_batch(self, x: Tree) -> Tree:
        """Return the outputs for one batch of arrays, NumPy arrays."""
        return self.predict(x, batch_size=_rows(x), verbose=0)

    def fit(self, *args: Any, **kwargs: Any) -> Mapping[str, list[float]]:
        """Train; see `Model.fit`."""
        raise NotImplementedError

    def __call__(self, *inputs: TensorLike, **options: Any) -> Tree:
        """Call the network with the plan in force."""
        self._networks.precision.apply()
        return self._networks.network(*inputs, **options)

    def __getattr__(self, name: str) -> Any:
        """Return what a Keras network has by its names in Keras, such as `trainable_variables` and `get_layer`."""
        networks = vars(self).get("_networks")
        if name in _OF_NETWORK and networks is not None and isinstance(networks.network, keras.Model):
            return getattr(networks.network, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def metrics_names(self) -> list[str]:
        """The names of the values that `evaluate` returns, the loss first."""
        if self._own is not None:
            return list(self._networks.network.metrics_names)
        return ["loss", *self._metrics.named]

    def compile(
        self, optimizer: Optimizer | str = "rmsprop", loss: LossFn | None = None, loss_weights: Any = None,
        metrics: MetricsLike | None = None, weighted_metrics: MetricsLike | None = None, run_eagerly: bool = False,
        steps_per_execution: int = 1, jit_compile: bool | str = "auto", auto_scale_loss: bool = True,
    ) -> None:
        """Give the Model another loss, optimizer and metrics, as Keras's `compile`; its precision stays.

        Args:
            optimizer, loss, loss_weights, metrics, weighted_metrics: As of `Model`.
            run_eagerly: Whether steps run operation by operation, as in MindSpore's PYNATIVE_MODE, to debug them.
            steps_per_execution: Accepted: several steps run in a call wherever no callback needs each of them.
            jit_compile: Whether TensorFlow compiles steps by XLA, as JAX does; "auto" is decided by layers, dtypes and
                the device.
            auto_scale_loss: Whether the loss is scaled by default for layers of the policy "mixed_float16".

        Example: ``model.compile("adam", "mse", metrics=["mae"])``.
        """
        checks.integer("Model.compile", "steps_per_execution", steps_per_execution, at_least=1)
        checks.boolean("Model.compile", "run_eagerly", run_eagerly)
        checks.one_of("Model.compile", "jit_compile", jit_compile, ("auto", True, False))
        options = self._options if auto_scale_loss else {**self._options, "loss_scale_manager": None}
        make: Any = type(self).__init__
        make(
            self, self._networks.network, loss, optimizer, metrics, loss_weights=loss_weights,
            weighted_metrics=weighted_metrics, **options,
        )
        if self._own is not None:
            network = self._networks.network
            network.run_eagerly = run_eagerly
            network.jit_compile = network.jit_compile if jit_compile == "auto" else jit_compile
        if run_eagerly:
            self._execution["graph_mode"] = False
        if jit_compile != "auto":
            self._execution["jit_level"] = "O1" if jit_compile else "O0"

    def _keras_network(self, method: str, alternative: str) -> keras.Model:
        network = self._networks.network
        if not isinstance(network, keras.Model):
            raise checks.fail_type(f"Model.{method}", "the network must be a keras.Model", network, alternative)
        return network

    def _predict_batches(
        self, x: Tree, batch_size: int | None, verbose: str | int, steps: int | None, callbacks: Any
    ) -> Tree:
        """Run a Keras network batch by batch; return the outputs for all rows as NumPy arrays."""
        rows = BATCH_SIZE if batch_size is None else batch_size
        # A fast path for the common case; anything else is checked by `KerasData`.
        small = type(x) is np.ndarray and x.ndim and type(rows) is int and len(x) <= rows
        shown = evaluation_verbose("Model.predict", verbose)
        if small and steps is None and not callbacks and not shown:
            return self._predict_batch(x)
        dicts = self._networks.dicts
        data = KerasData("Model.predict", x, None, None, None, batch_size, steps, dicts=dicts)
        feed, network = Feed(data.dataset(), "Model.predict", dicts=dicts), self._networks.network
        batches, count = feed.batches(), feed.size
        outputs = [*self._predicted(batches, _predict_hooks(network, callbacks, count, shown))]
        if not outputs:
            raise checks.fail_value("Model.predict", "the data must have rows", 0, "model.predict(x)")
        return keras.tree.map_structure(lambda *parts: np.concatenate(parts), *outputs)

    def _predicted(self, batches: Iterator[Batch], hooks: keras.callbacks.CallbackList) -> Iterator[Tree]:
        """Yield the outputs for batches, until a callback stops the prediction."""
        network = self._networks.network
        network.stop_predicting = False
        hooks.on_predict_begin()
        for index, batch in enumerate(batches):
            hooks.on_predict_batch_begin(index)
            outputs = self._predict_batch(batch[0])
            hooks.on_predict_batch_end(index, {"outputs": outputs})
            yield outputs
            if network.stop_predicting:
                break
        hooks.on_predict_end()

    def _predict_batch(self, batch: Tree) -> Tree:
        """Return the outputs for a batch as NumPy arrays."""
        outputs = self._run(as_batch((batch,)))
        return keras.tree.map_structure(backend.to_numpy, boundary.to_backend_tensors(outputs))


def _rows(x: Tree) -> int:
    """Return the number of rows of a batch of arrays."""
    return max(int((*np.shape(keras.tree.flatten(x)[0]), 1)[0]), 1)


def _values(values: Mapping[str, Any], return_dict: bool) -> Any:
    """Return values by name as Keras does: a dict, or a list in the same order, or a single number."""
    if return_dict:
        return dict(values)
    listed = [value for name, value in values.items() if name not in ("loss_scale", "skipped_steps")]
    return listed if len(listed) > 1 else listed[0]


def _predict_hooks(
    network: keras.Layer, callbacks: Any, steps: int | None, verbose: int
) -> keras.callbacks.CallbackList:
    callbacks = as_list(callbacks)
    for callback in callbacks:
        checks.instance(
            "Model.predict", "callbacks", callback, keras.callbacks.Callback,
            "a keras.callbacks.Callback with on_predict_batch_end; a mixtrain.Callback has no hooks of predict",
        )
    bar: dict[str, Any] = {"verbose": verbose, "add_progbar": bool(verbose)}
    return keras.callbacks.CallbackList(callbacks, model=network, epochs=1, steps=steps, **bar)
