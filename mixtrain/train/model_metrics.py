"""Resolve the `metrics` of a `Model`: mixtrain's names and objects, or the forms of Keras's `compile`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import keras

from mixtrain import checks
from mixtrain.metrics import Metric, MetricLike, as_metrics
from mixtrain.metrics.metric import SparseLabels
from mixtrain.step.network_loss import output_names
from mixtrain.step.output_losses import by_path, is_keras_loss, one_of_outputs, outputs_by_name
from mixtrain.train.keras_metrics import CompileMetric, checked_weighted, is_keras_metric, keras_results, metric_name
from mixtrain.typing import LossFn, Network, Tree

# Names that mean Keras's metrics for a Keras network with a Keras loss, even in a set or dict, whose other names are
# MindSpore's.
_KERAS_NAMES: Final = ("accuracy", "acc", "mse", "mae")


class OutputMetric(Metric):
    """A metric of one of several outputs.

    `output`: Name of the output, or its index if outputs have no names. `names`: Names of the
    outputs of a network that returns them as a list.
    """

    def __init__(self, metric: MetricLike, output: Any, names: list[str]) -> None:
        super().__init__()
        self.metric = metric
        self._output = output
        self._names = names

    def clear(self) -> None:
        """Reset the metric."""
        self.metric.clear()

    def update(self, *inputs: Tree) -> None:
        """Update with one batch: all outputs and all labels."""
        self.metric.update(*self._select(*inputs))

    def _select(self, outputs: Tree, label: Tree) -> tuple[Tree, Tree]:
        """Return the prediction and label of this metric's output."""
        named = outputs_by_name(outputs, self._names)
        prediction = one_of_outputs("output", named, self._output, list(named))
        return prediction, one_of_outputs("label", label, self._output, list(named))

    def _sparse_labels(self, *inputs: Tree) -> SparseLabels | None:
        return self.metric._sparse_labels(*self._select(*inputs)) if isinstance(self.metric, Metric) else None

    def eval(self) -> Any:
        """Return the metric's value."""
        return self.metric.eval()


def model_metrics(
    network: Network, loss_fn: LossFn | None, metrics: Any, weighted_metrics: Any = None
) -> dict[str, MetricLike]:
    """Return a Model's metrics by name.

    `network`: The Model's network. `loss_fn`: Its loss; a dict or list for several outputs. `metrics`: As for
    `as_metrics`. For a network of several outputs also a dict from output name, or a list, of metrics or lists of
    metrics, with results named ``output_metric``. In a list for a Keras network with a Keras loss, names have their
    meaning in Keras's `compile`. `weighted_metrics`: Keras's metrics that use sample weights, in the same forms.

    Raises: TypeError if one is neither a name nor a metric. ValueError if a name is unknown, or used by two metrics.
    """
    names, outputs = output_names(network), _outputs(network, loss_fn, metrics)
    in_keras = isinstance(network, keras.Layer) and is_keras_loss(loss_fn, keras_network=True)
    nested = _nested_outputs(network, metrics, weighted_metrics) if in_keras else {}
    if nested:
        outputs, metrics, weighted_metrics = list(nested), by_path(metrics), by_path(weighted_metrics)
    # Whether keys are outputs, or the names of results of the only output, is known once such a network has run.
    unknown_outputs = in_keras and not names and not outputs
    if unknown_outputs and isinstance(metrics, dict):
        plain = [(None, name, metric) for name, metric in _keyed(metrics)]
    else:
        by_output: dict[Any, Any] | None = _by_output("metrics", names, outputs, metrics, in_keras)
        plain = [
            (output, name, metric)
            for output, items in ({None: metrics} if by_output is None else by_output).items()
            for name, metric in _named(items, output, names, in_keras)
        ]
    if unknown_outputs and isinstance(weighted_metrics, dict):
        rows = [(None, key, item) for key, items in weighted_metrics.items() for item in _as_list(items)]
    else:
        weighted_by_output = _by_output("weighted_metrics", names, outputs, weighted_metrics, True)
        if weighted_by_output is None:
            raise checks.fail_value(
                "Model", f"weighted_metrics must be a list for the outputs {outputs or [None]}, or a dict by their "
                "names", weighted_metrics, 'weighted_metrics=["accuracy"]',
            )
        rows = [(output, None, item) for output, items in weighted_by_output.items() for item in items]
    weighted = [
        (output, metric_name(item), CompileMetric(checked_weighted(item), output, names, key=key, weighted=True))
        for output, key, item in rows
    ]
    # Keras has no names for the outputs of a network that is not functional.
    unnamed = range(len(outputs)) if in_keras else ()
    plain_names, weighted_names = keras_results(*(
        [(None if output in unnamed else nested.get(output, output), name) for output, name, _ in items]
        for items in (plain, weighted)
    ))
    return {name: item[2] for name, item in zip([*plain_names, *weighted_names], [*plain, *weighted], strict=True)}


def _outputs(network: Network, loss_fn: LossFn, metrics: Any) -> list[Any]:
    """Return the names, or else the indexes, of a network's several outputs; an empty list for a single output."""
    names = output_names(network)
    if len(names) > 1:
        return list(names)
    if names and _is_list(loss_fn) or isinstance(network, keras.Sequential):
        return []
    if not isinstance(loss_fn, (dict, list, tuple)) and isinstance(metrics, dict) and len(metrics) > 1:
        # Lists by name are Keras's form, for the dict that a model returns which is not functional.
        return sorted(metrics) if any(map(_is_list, metrics.values())) else []
    return list(loss_fn) if isinstance(loss_fn, dict) else list(range(len(loss_fn))) if _is_list(loss_fn) else []


def _nested_outputs(network: Network, *metrics: Any) -> dict[Any, Any]:
    """Return the paths of outputs that metrics in nested dicts name, each with Keras's name for its output.

    That is the name of the layer in a functional model, and None in others. The result is empty if no dict is nested.
    """
    nested = [values for values in metrics if isinstance(values, dict) and any(map(_is_dict, values.values()))]
    tensors = network.output if nested and output_names(network) else {}
    layer_names = dict(zip(map(id, keras.tree.flatten(tensors)), getattr(network, "output_names", ()), strict=False))
    known = {path: layer_names[id(tensor)] for path, tensor in outputs_by_name(tensors, ()).items()}
    return {path: known.get(path) for path in sorted({path for values in nested for path in by_path(values)})}


def _keyed(metrics: dict[str, Any]) -> Iterator[tuple[str, MetricLike]]:
    """Yield Keras's metrics by key, each with its key, and mixtrain's, with their names for the only output."""
    listed = any(map(_is_list, metrics.values()))
    for key, items in metrics.items():
        for item in _as_list(items):
            known = is_keras_metric(item) if listed else item in _KERAS_NAMES or isinstance(item, keras.metrics.Metric)
            if known:
                yield metric_name(item) if listed else key, CompileMetric(item, key=key)
            else:
                yield from _named_by_mixtrain([item] if listed else {key: item}, None, [])


def _by_output(
    argument: str, names: list[str], outputs: list[Any], metrics: Any, in_keras: bool
) -> dict[Any, list[Any]] | None:
    """Return lists of metrics by output, None being the only one; None if the metrics are not written by output."""
    if metrics is None:
        return {}
    if isinstance(metrics, dict):
        if len(outputs) < 2 and in_keras and (set(metrics) == set(names) or any(map(_is_list, metrics.values()))):
            return {None: keras.tree.flatten(metrics)}
        by_name = bool(metrics) and set(metrics) <= set(outputs)
        in_order = [name for name in outputs if name in metrics] if by_name else []
        return {name: _as_list(metrics[name]) for name in in_order} if by_name else None
    if not _is_list(metrics):
        return {None: _as_list(metrics)} if in_keras and not isinstance(metrics, (set, frozenset)) else None
    if len(outputs) < 2 and in_keras:
        return {None: keras.tree.flatten(metrics)}
    one_per_output = in_keras and len(outputs) > 1 and not any(isinstance(item, Metric) for item in metrics)
    if not one_per_output and not any(map(_is_list, metrics)):
        return None
    if len(metrics) != len(outputs):
        raise checks.fail_value(
            argument, f"a list of lists must have one for each of the {len(outputs)} outputs", len(metrics),
            f'{argument}=[["accuracy"], ["mae"]], or a dict of lists by output name',
        )
    return {name: _as_list(item) for name, item in zip(outputs, metrics, strict=True)}


def _named(metrics: Any, output: Any, names: list[str], in_keras: bool) -> Iterator[tuple[str, MetricLike]]:
    """Yield the metrics of one output with their names."""
    if in_keras and _is_list(metrics):
        for item in metrics:
            if is_keras_metric(item):
                yield metric_name(item), CompileMetric(item, output, names)
            else:
                yield from _named_by_mixtrain([item], output, names)
    elif in_keras and isinstance(metrics, dict):
        for name, item in metrics.items():
            if item in _KERAS_NAMES:
                yield name, CompileMetric(item, output, names)
            else:
                yield from _named_by_mixtrain({name: item}, output, names)
    elif in_keras and isinstance(metrics, (set, frozenset)):
        for name, item in as_metrics(metrics).items():
            yield name, CompileMetric(name) if name in _KERAS_NAMES else item
    else:
        yield from _named_by_mixtrain(metrics, output, names)


def _named_by_mixtrain(metrics: Any, output: Any, names: list[str]) -> Iterator[tuple[str, MetricLike]]:
    for name, metric in as_metrics(metrics).items():
        yield name, metric if output is None else OutputMetric(metric, output, names)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
