"""Keras's metrics as `keras.Model.compile` takes them, and their update on the device in one compiled call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import keras

from mixtrain import backend, checks, context
from mixtrain.backend import JitChoice
from mixtrain.nn.metrics import KerasMetric, Metric
from mixtrain.nn.metrics.keras_metric import SPARSE_METRICS
from mixtrain.nn.metrics.metric import SparseLabels, class_numbers
from mixtrain.step.output_losses import one_of_outputs, outputs_by_name

_PLAIN: Final = JitChoice(False, "a user's metric may have operations that XLA lacks")
# What a metric raises while it is compiled that looks at values: `if tensor`, `np.asarray(tensor)`, `tensor.numpy()`.
NOT_FOR_A_GRAPH: Final = (TypeError, NotImplementedError, AttributeError)

# Functions of metrics that read labels as class numbers.
_SPARSE_FUNCTIONS: Final = (
    keras.metrics.sparse_categorical_accuracy,
    keras.metrics.sparse_top_k_categorical_accuracy,
    keras.metrics.sparse_categorical_crossentropy,
)


class CompileMetric(Metric):
    """A Keras metric of one output; what a name stands for is decided by the shapes of the first batch.

    Args:
        given: A Keras metric, a name that Keras knows, or a function of ``(labels, predictions)``.
        output: Name of the output, or its index where outputs have no names; None where there is only one.
        names: Names of outputs that come as a list.
        weighted: Whether samples count by their weights.

    Example:
        >>> import numpy as np
        >>> CompileMetric("accuracy")(np.array([[0.9], [0.2]]), np.array([[1.0], [1.0]]))
        0.5
    """

    def __init__(
        self, given: Any, output: Any = None, names: Sequence[str] = (), *, weighted: bool = False
    ) -> None:
        super().__init__()
        self._given = given
        self._output = output
        self._names = names
        self._weighted = weighted
        self.metric: keras.metrics.Metric | None = given if isinstance(given, keras.metrics.Metric) else None

    def clear(self) -> None:
        """Forget what was gathered."""
        if self.metric is not None:
            self.metric.reset_state()

    def update(self, *inputs: Any) -> None:
        """Take in one batch: all predictions, all labels, and the weights of the samples where there are any."""
        predictions, labels, weights = self._own_part(*inputs)
        if self.metric is None:
            self.metric = _made(self._given, tuple(predictions.shape), tuple(labels.shape))
        self.metric.update_state(labels, predictions, *([weights] if self._weighted else []))

    def _sparse_labels(self, *inputs: Any) -> SparseLabels | None:
        predictions, labels, weights = self._own_part(*inputs)
        metric = self.metric or _made(self._given, tuple(predictions.shape), tuple(labels.shape))
        if not isinstance(metric, SPARSE_METRICS) and self._given not in _SPARSE_FUNCTIONS:
            return None
        found = class_numbers(predictions, labels, axis=-1)
        return dataclasses.replace(found, weights=weights) if found is not None and self._weighted else found

    def _own_part(self, predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any, Any]:
        """Return the predictions, labels and weights of this metric's output."""
        if self._output is None:
            return _only(predictions), _only(labels), None if weights is None else _only(weights)
        named = outputs_by_name(predictions, self._names)
        listed = list(named)
        if isinstance(weights, dict):
            weights = weights.get(self._output)
        elif isinstance(weights, (list, tuple)):
            weights = one_of_outputs("sample_weight", weights, self._output, listed)
        label = one_of_outputs("label", labels, self._output, listed)
        return one_of_outputs("output", named, self._output, listed), label, weights

    def eval(self) -> Any:
        """Return the value: a float, or an array or dict where Keras gives one.

        Raises:
            RuntimeError: There was no batch.
        """
        if self.metric is None:
            raise RuntimeError(
                f"{metric_name(self._given)}: expected update before eval; got no batch. "
                "Write metric.update(predictions, labels)."
            )
        return KerasMetric(self.metric).eval()


def _only(value: Any) -> Any:
    """Return the single tensor of a structure, such as a dict of one output; a structure of several as it is."""
    parts = keras.tree.flatten(value)
    return backend.to_tensor(parts[0]) if len(parts) == 1 else value


def _made(given: Any, predictions: tuple[int, ...], labels: tuple[int, ...]) -> keras.metrics.Metric:
    """Return a new metric: of a name or a function, and for "accuracy" the kind that suits the shapes."""
    if not isinstance(given, str) or given.lower() not in ("accuracy", "acc"):
        found = keras.metrics.get(given)
        if isinstance(found, keras.metrics.Metric):
            return found
        return keras.metrics.MeanMetricWrapper(found, name=metric_name(given))
    if predictions[-1] == 1 or len(predictions) == 1:
        return keras.metrics.BinaryAccuracy()
    if len(labels) < len(predictions) or labels[-1] == 1:
        return keras.metrics.SparseCategoricalAccuracy()
    return keras.metrics.CategoricalAccuracy()


def metric_name(given: Any) -> str:
    """Return what Keras calls a metric in its results."""
    if isinstance(given, str):
        return given
    return str(getattr(given, "name", None) or getattr(given, "__name__", type(given).__name__))


def is_keras_metric(given: Any) -> bool:
    """Whether Keras's `compile` would take it as a metric: an object, a name that it knows, a function."""
    if isinstance(given, str):
        try:
            return given.lower() in ("accuracy", "acc") or keras.metrics.get(given) is not None
        except ValueError:
            return False
    if isinstance(given, keras.metrics.Metric):
        return True
    return callable(given) and not isinstance(given, (Metric, type))


def keras_results(plain: Sequence[tuple[Any, str]], weighted: Sequence[tuple[Any, str]]) -> tuple[list[str], list[str]]:
    """Return the names that metrics have in Keras's results.

    Args:
        plain: The output, None for the only one, and the name of each metric.
        weighted: Likewise of the metrics that weigh samples.

    Example:
        >>> keras_results([("a", "mae"), ("a", "mae")], [("a", "mae"), ("b", "mse")])
        (['a_mae', 'a_mae_1'], ['a_weighted_mae', 'b_mse'])
    """
    counts: dict[str, int] = {}

    def taken(name: str) -> str:
        counts[name] = counts.get(name, 0) + 1
        return name if counts[name] == 1 else f"{name}_{counts[name] - 1}"

    def shown(output: Any, name: str) -> str:
        return name if output is None else f"{output}_{name}"

    first = [taken(shown(*item)) for item in plain]
    unlike = [name if shown(output, name) not in counts else f"weighted_{name}" for output, name in weighted]
    return first, [taken(shown(item[0], name)) for item, name in zip(weighted, unlike, strict=True)]


class DeviceMetrics:
    """Keras's metrics of a Model, all updated in one compiled call for each batch, without a look at the numbers.

    The first batch is taken in without compilation, for some metrics make their variables then; so is every batch where
    a metric of the user's looks at values.

    Args:
        metrics: The metrics: each a `KerasMetric` or a `CompileMetric`.
    """

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics
        self._compiled: dict[bool, Callable[..., None]] = {}
        self._compilable = True

    def update(self, predictions: Any, labels: Any, weights: Any, masks: Sequence[Any]) -> None:
        """Take in one batch.

        Args:
            predictions: The network's outputs.
            labels: Their labels.
            weights: The weights of the samples, or None.
            masks: The mask that Keras's layers gave each of the outputs, or None.
        """
        if not self._metrics:
            return
        graph = context.graph_mode()
        if not self._compiled or not self._compilable:
            self._update(predictions, labels, weights, masks)
            self._compiled.setdefault(graph, backend.compile_function(self._update, choice=_PLAIN))
            return
        if graph not in self._compiled:
            self._compiled[graph] = backend.compile_function(self._update, choice=_PLAIN)
        try:
            self._compiled[graph](predictions, labels, weights, masks)
        except NOT_FOR_A_GRAPH:
            self._compilable = False
            self._update(predictions, labels, weights, masks)

    def _update(self, predictions: Any, labels: Any, weights: Any, masks: Sequence[Any]) -> None:
        give_masks(predictions, masks)
        for metric in self._metrics:
            update_metric(metric, predictions, labels, weights)


def give_masks(outputs: Any, masks: Sequence[Any]) -> None:
    """Give a network's outputs the masks that `masks_of` returned, which a compiled call has lost."""
    for output, mask in zip(keras.tree.flatten(outputs), masks, strict=True):
        if mask is not None:
            backend.give_mask(output, mask)


def update_metric(metric: Metric, predictions: Any, labels: Any, weights: Any) -> None:
    """Let a `KerasMetric` or a `CompileMetric`, which alone knows of weights, take in a batch."""
    metric.update(predictions, labels, *([weights] if isinstance(metric, CompileMetric) else []))


def metrics_of_layers(network: Any) -> list[keras.metrics.Metric]:
    """Return the metrics that a Keras network updates in its forward pass; of another network none."""
    if not isinstance(network, keras.Layer):
        return []
    compiled = getattr(network, "compiled", False)
    try:
        if compiled:
            # Else its `metrics` begins with its loss and those of its `compile`, which nobody updates here.
            network.compiled = False
        return list(network.metrics)
    finally:
        if compiled:
            network.compiled = True


def flat_results(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return results by name where that of a metric may be a dict of several, as Keras does."""
    flat: dict[str, Any] = {}
    for name, value in results.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat


def masks_of(outputs: Any) -> list[Any]:
    """Return the mask that Keras's layers gave each of a network's outputs, or None."""
    return [backend.mask_of(output) for output in keras.tree.flatten(outputs)]


def checked_weighted(metric: Any) -> Any:
    """Return a metric that can weigh samples.

    Raises:
        TypeError: It is no Keras metric, nor the name of one.
    """
    if not is_keras_metric(metric):
        raise checks.fail_type(
            "Model", "each of weighted_metrics must be a Keras metric or its name", metric,
            'weighted_metrics=["accuracy"]',
        )
    return metric
