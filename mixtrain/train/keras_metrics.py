"""Keras's metrics as passed to `keras.Model.compile`, updated on the device in one compiled call."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import keras

from mixtrain import backend, checks, execution
from mixtrain.backend import JitChoice
from mixtrain.metrics import KerasMetric, Metric
from mixtrain.metrics.keras_metric import SPARSE_METRICS
from mixtrain.metrics.metric import SparseLabels, class_indices
from mixtrain.network.keras_own import keras_owns
from mixtrain.step.output_losses import by_path, one_of_outputs, outputs_by_name
from mixtrain.typing import Network, Tensor, Tree

_PLAIN: Final = JitChoice(False, "a user's metric may have operations that XLA lacks")
# Errors of a compiled metric that reads values: `if tensor`, `np.asarray(tensor)`, `tensor.numpy()`.
NOT_FOR_A_GRAPH: Final = (TypeError, NotImplementedError, AttributeError)

# Metric functions whose labels are class numbers.
_SPARSE_FUNCTIONS: Final = (
    keras.metrics.sparse_categorical_accuracy, keras.metrics.sparse_top_k_categorical_accuracy,
    keras.metrics.sparse_categorical_crossentropy,
)


class CompileMetric(Metric):
    """A Keras metric of one output; the metric that "accuracy" stands for depends on the shapes of the first batch.

    `metric`: A Keras metric, a name that Keras knows, or a function of ``(labels, predictions)``. `output`: Name of the
    output, or its index if outputs have no names; None for the only output. `names`: Names of the outputs of a network
    that returns them as a list. `key`: A name that is that of the output, if a network that is not functional turns out
    to return several. `weighted`: Whether to use sample weights.

    The attributes `identifier` and `output` are what was passed. Example:
    ``CompileMetric("accuracy")(predictions, labels)``.
    """

    def __init__(
        self, metric: Any, output: str | int | None = None, names: Sequence[str] = (), *, key: str | None = None,
        weighted: bool = False,
    ) -> None:
        super().__init__()
        self.identifier = metric
        self.output = output
        self._names = names
        self._key = key
        self._weighted = weighted
        self.metric: keras.metrics.Metric | None = metric if isinstance(metric, keras.metrics.Metric) else None

    def clear(self) -> None:
        if self.metric is not None:
            self.metric.reset_state()

    def update(self, *inputs: Tree) -> None:
        """Update with one batch: all predictions, all labels, and the sample weights if there are any."""
        predictions, labels, weights = self._select(*inputs)
        if self.metric is None:
            self.metric = _get_metric(self.identifier, tuple(predictions.shape), tuple(labels.shape))
        self.metric.update_state(labels, predictions, *([weights] if self._weighted else []))

    def _sparse_labels(self, *inputs: Tree) -> SparseLabels | None:
        predictions, labels, weights = self._select(*inputs)
        metric = self.metric or _get_metric(self.identifier, tuple(predictions.shape), tuple(labels.shape))
        if not isinstance(metric, SPARSE_METRICS) and self.identifier not in _SPARSE_FUNCTIONS:
            return None
        sparse = class_indices(predictions, labels, axis=-1)
        return dataclasses.replace(sparse, weights=weights) if sparse is not None and self._weighted else sparse

    def find_output(self, predictions: Tree) -> None:
        """Read from a network's outputs whether the key of this metric is one of several."""
        outputs = outputs_by_name(predictions, ())
        if self._key is not None and len(outputs) > 1 and self._key in outputs:
            self.output = self._key

    def name_of_result(self, name: str) -> str:
        """Return the name in results, of a metric that `name` belongs to if its key is not an output."""
        found = self._key is not None and self.output is not None
        return f"{self.output}_{metric_name(self.identifier)}" if found else name

    def _select(self, predictions: Tree, labels: Tree, weights: Tree | None = None) -> tuple[Tree, Tree, Tree | None]:
        """Return the predictions, labels and weights of this metric's output."""
        self.find_output(predictions)
        if self.output is None:
            _check_single(self, predictions)
            return _single(predictions), _single(labels), None if weights is None else _single(weights)
        outputs = outputs_by_name(predictions, self._names)
        names = list(outputs)
        if isinstance(predictions, dict) and len(outputs) != len(predictions):  # Nested, so are the labels.
            labels, weights = by_path(labels), by_path(weights)
        if isinstance(weights, dict):
            weights = weights.get(self.output)
        elif isinstance(weights, (list, tuple)):
            weights = one_of_outputs("sample_weight", weights, self.output, names)
        label = one_of_outputs("label", labels, self.output, names)
        return one_of_outputs("output", outputs, self.output, names), label, weights

    def eval(self) -> Any:
        """Return the value: a float, or Keras's array or dict."""
        if self.metric is None:
            raise RuntimeError(
                f"{metric_name(self.identifier)}: expected update before eval; got no batch. "
                "Write metric.update(predictions, labels)."
            )
        return KerasMetric(self.metric).eval()


def _single(value: Any) -> Any:
    """Return the tensor of a structure of one, such as a dict of one output; a structure of several unchanged."""
    parts = keras.tree.flatten(value)
    return backend.to_tensor(parts[0]) if len(parts) == 1 else value


def _get_metric(identifier: Any, predictions: tuple[int, ...], labels: tuple[int, ...]) -> keras.metrics.Metric:
    """Return a new metric of a name or a function; "accuracy" becomes the kind that suits the shapes."""
    if not isinstance(identifier, str) or identifier.lower() not in ("accuracy", "acc"):
        metric = keras.metrics.get(identifier)
        if isinstance(metric, keras.metrics.Metric):
            return metric
        return keras.metrics.MeanMetricWrapper(metric, name=metric_name(identifier))
    if predictions[-1] == 1 or len(predictions) == 1:
        return keras.metrics.BinaryAccuracy()
    if len(labels) < len(predictions) or labels[-1] == 1:
        return keras.metrics.SparseCategoricalAccuracy()
    return keras.metrics.CategoricalAccuracy()


def metric_name(metric: Any) -> str:
    """Return a metric's name in Keras's results: of a function or a callable object its own name in snake case."""
    if isinstance(metric, str) or getattr(metric, "name", None):
        return str(getattr(metric, "name", metric))
    name = re.sub(r"\W+", "", getattr(metric, "__name__", type(metric).__name__))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()


def is_keras_metric(metric: Any) -> bool:
    """Whether Keras's `compile` accepts a metric: an object, a name that it knows, a function."""
    if isinstance(metric, str):
        try:
            return metric.lower() in ("accuracy", "acc") or keras.metrics.get(metric) is not None
        except ValueError:
            return False
    if isinstance(metric, keras.metrics.Metric):
        return True
    return callable(metric) and not isinstance(metric, (Metric, type))


def keras_results(plain: Sequence[tuple[Any, str]], weighted: Sequence[tuple[Any, str]]) -> tuple[list[str], list[str]]:
    """Return the names of metrics in Keras's results, from the output (None for the only one) and the name of each.

    Example:
        >>> keras_results([("a", "mae"), ("a", "mae")], [("a", "mae"), ("b", "mse")])
        (['a_mae', 'a_mae_1'], ['a_weighted_mae', 'b_mse'])
    """
    counts: dict[str, int] = {}

    def unique(name: str) -> str:
        counts[name] = counts.get(name, 0) + 1
        return name if counts[name] == 1 else f"{name}_{counts[name] - 1}"

    def full_name(output: Any, name: str) -> str:
        return name if output is None else f"{output}_{name}"

    plain_names = [unique(full_name(*item)) for item in plain]
    weighted_names = [
        unique(full_name(output, f"weighted_{name}" if full_name(output, name) in counts else name))
        for output, name in weighted
    ]
    return plain_names, weighted_names


def by_result(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return metrics by the names of their results, once the network has run."""
    return {
        metric.name_of_result(name) if isinstance(metric, CompileMetric) else name: metric
        for name, metric in metrics.items()
    }


class DeviceMetrics:
    """Keras's metrics of a Model, all updated in one compiled call for each batch, without reading values.

    The first update is not compiled, because some metrics create their variables in it. No update is compiled if a
    user's metric reads values.
    """

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics
        self._compiled: dict[bool, Callable[..., None]] = {}  # By whether the mode is graph mode.
        self._built = False
        self._compilable = True

    def update(self, predictions: Tree, labels: Tree, weights: Tree | None, masks: Sequence[Tensor | None]) -> None:
        """Update with one batch; `masks` holds the mask of each output from Keras's layers, or None."""
        if not self._metrics:
            return
        if not self._built or not self._compilable:
            self._update(predictions, labels, weights, masks)
            self._built = True
            return
        graph = execution.current.graph_mode
        if graph not in self._compiled:
            self._compiled[graph] = backend.compile_function(self._update, choice=_PLAIN)
        try:
            self._compiled[graph](predictions, labels, weights, masks)
        except NOT_FOR_A_GRAPH:
            self._compilable = False
            self._update(predictions, labels, weights, masks)

    def _update(self, predictions: Tree, labels: Tree, weights: Tree | None, masks: Sequence[Tensor | None]) -> None:
        give_masks(predictions, masks)
        for metric in self._metrics:
            update_metric(metric, predictions, labels, weights)


def give_masks(outputs: Tree, masks: Sequence[Tensor | None]) -> None:
    """Attach the masks that `masks_of` returned to a network's outputs, which lose them in a compiled call."""
    for output, mask in zip(keras.tree.flatten(outputs), masks, strict=True):
        if mask is not None:
            backend.set_mask(output, mask)


def update_metric(metric: Metric, predictions: Tree, labels: Tree, weights: Tree | None) -> None:
    """Update a `KerasMetric`, or a `CompileMetric`, which takes sample weights too, with a batch."""
    if isinstance(metric, CompileMetric):
        metric.find_output(predictions)
    _check_single(metric, predictions)
    metric.update(predictions, labels, *([weights] if isinstance(metric, CompileMetric) else []))


def _is_of_one_output(metric: Metric) -> bool:
    """Whether a metric without an output takes one alone; a metric object of the user's may take all outputs."""
    if isinstance(metric, CompileMetric):
        return metric.output is None and _is_for_tensors(metric.identifier)
    return isinstance(metric, KerasMetric) and metric.indexes is None and _is_for_tensors(metric.metric)


def _is_for_tensors(metric: Any) -> bool:
    own, wrapper = type(metric), keras.metrics.MeanMetricWrapper  # The function in a wrapper may be the user's.
    return not isinstance(metric, keras.metrics.Metric) or own is not wrapper and keras_owns(own)


def _check_single(metric: Metric, predictions: Tree) -> None:
    """Check that a metric that takes one output, and was not told which, gets no more.

    Raises: ValueError if there are several.
    """
    outputs = list(outputs_by_name(predictions, ()))
    if len(outputs) > 1 and _is_of_one_output(metric):
        name = metric_name(getattr(metric, "identifier", None) or getattr(metric, "metric", metric))
        lists: Any = [[] for _ in outputs[1:]] + [[name]]
        by_name = isinstance(predictions, dict)
        raise checks.fail_value(
            "Model", f"the metric {name!r} must belong to one of the network's outputs, {outputs}", "all of them",
            f"a list of metrics for each, as metrics={dict(zip(outputs, lists, strict=True)) if by_name else lists}"
            + ("" if by_name else ", and a list of losses"),
        )


def metrics_of_layers(network: Network) -> list[keras.metrics.Metric]:
    """Return the metrics that a Keras network updates in its forward pass; none for other networks."""
    if not isinstance(network, keras.Layer):
        return []
    compiled = getattr(network, "compiled", False)
    try:
        if compiled:
            # Otherwise `metrics` begins with the loss and the metrics of `compile`, which are not updated here.
            network.compiled = False
        return list(network.metrics)
    finally:
        if compiled:
            network.compiled = True


def flat_results(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return results by name, with the results of a metric that returns a dict merged in, as in Keras."""
    flat: dict[str, Any] = {}
    for name, value in results.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat


def checked_weighted(metric: Any) -> Any:
    """Return a metric, checked to accept sample weights."""
    if not is_keras_metric(metric):
        raise checks.fail_type(
            "Model", "each of weighted_metrics must be a Keras metric or its name", metric,
            'weighted_metrics=["accuracy"]',
        )
    return metric
