"""The metrics of a Model as they were written: by mixtrain's names, or as Keras's `compile` takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import keras

from mixtrain import checks
from mixtrain.nn.metrics import Metric, MetricLike, as_metrics
from mixtrain.nn.metrics.metric import SparseLabels
from mixtrain.step.loss_cell import output_names
from mixtrain.step.output_losses import is_keras_loss, one_of_outputs, outputs_by_name
from mixtrain.train.keras_metrics import CompileMetric, checked_weighted, is_keras_metric, keras_results, metric_name

# Names that mean Keras's metric in a set or dict too, which otherwise speak as MindSpore does, where the network and
# the loss are Keras's.
_KERAS_MEANING: Final = ("accuracy", "acc", "mse", "mae")


class OutputMetric(Metric):
    """A metric of one of several outputs.

    Args:
        metric: The metric.
        output: Name of the output, or its index where outputs have no names.
        names: Names of outputs that come as a list.
    """

    def __init__(self, metric: MetricLike, output: Any, names: list[str]) -> None:
        super().__init__()
        self.metric = metric
        self._output = output
        self._names = names

    def clear(self) -> None:
        """Forget what was gathered."""
        self.metric.clear()

    def update(self, *inputs: Any) -> None:
        """Take in one batch: all outputs and all labels."""
        self.metric.update(*self._own_part(*inputs))

    def _own_part(self, outputs: Any, label: Any) -> tuple[Any, Any]:
        """Return the prediction and label of this metric's output."""
        named = outputs_by_name(outputs, self._names)
        prediction = one_of_outputs("output", named, self._output, list(named))
        return prediction, one_of_outputs("label", label, self._output, list(named))

    def _sparse_labels(self, *inputs: Any) -> SparseLabels | None:
        return self.metric._sparse_labels(*self._own_part(*inputs)) if isinstance(self.metric, Metric) else None

    def eval(self) -> Any:
        """Return the metric's value."""
        return self.metric.eval()


def model_metrics(network: Any, loss_fn: Any, metrics: Any, weighted_metrics: Any = None) -> dict[str, MetricLike]:
    """Return a Model's metrics by name.

    Args:
        network: The Model's network.
        loss_fn: Its loss; of several outputs it is a dict or list.
        metrics: As `as_metrics` takes them; for a network of several outputs also a dict from output name, or a list,
            of metrics or lists of metrics, which are called ``output_metric``. In a list for a Keras network with a
            Keras loss, names mean what they mean in Keras's `compile`.
        weighted_metrics: Keras's metrics that count samples by their weights, in the same forms.

    Raises:
        TypeError: One is neither a name nor a metric.
        ValueError: A name is unknown, or stands for two metrics.
    """
    names, outputs = output_names(network), _outputs(network, loss_fn)
    in_keras = isinstance(network, keras.Layer) and is_keras_loss(loss_fn, keras_network=True)
    given: dict[Any, Any] | None = _by_output("metrics", names, outputs, metrics, in_keras)
    given = {None: metrics} if given is None else given
    plain = [
        (output, name, metric)
        for output, listed in given.items()
        for name, metric in _named(listed, output, names, in_keras)
    ]
    by_output = _by_output("weighted_metrics", names, outputs, weighted_metrics, True)
    if by_output is None:
        raise checks.fail_value(
            "Model", f"weighted_metrics must be a list for the outputs {outputs or [None]}, or a dict by their names",
            weighted_metrics, 'weighted_metrics=["accuracy"]',
        )
    weighted = [
        (output, metric_name(item), CompileMetric(checked_weighted(item), output, names, weighted=True))
        for output, listed in by_output.items()
        for item in listed
    ]
    shown = keras_results([item[:2] for item in plain], [item[:2] for item in weighted])
    return {name: item[2] for name, item in zip([*shown[0], *shown[1]], [*plain, *weighted], strict=True)}


def _outputs(network: Any, loss_fn: Any) -> list[Any]:
    """Return the names, or else the indexes, of a network's outputs where there are several."""
    names = output_names(network)
    if len(names) > 1:
        return list(names)
    return list(loss_fn) if isinstance(loss_fn, dict) else list(range(len(loss_fn))) if _is_list(loss_fn) else []


def _by_output(
    what: str, names: list[str], outputs: list[Any], metrics: Any, in_keras: bool
) -> dict[Any, list[Any]] | None:
    """Return lists of metrics by output, None standing for the only one; None where they are not written so."""
    if metrics is None:
        return {}
    if isinstance(metrics, dict):
        if len(outputs) < 2 and in_keras and (set(metrics) == set(names) or any(map(_is_list, metrics.values()))):
            return {None: keras.tree.flatten(metrics)}
        written = bool(metrics) and set(metrics) <= set(outputs)
        return {name: _as_list(item) for name, item in metrics.items()} if written else None
    if not _is_list(metrics):
        return {None: _as_list(metrics)} if in_keras and not isinstance(metrics, (set, frozenset)) else None
    if len(outputs) < 2 and in_keras:
        return {None: keras.tree.flatten(metrics)}
    of_outputs = in_keras and len(outputs) > 1 and not any(isinstance(item, Metric) for item in metrics)
    if not of_outputs and not any(map(_is_list, metrics)):
        return None
    if len(metrics) != len(outputs):
        raise checks.fail_value(
            what, f"a list of lists must have one for each of the {len(outputs)} outputs", len(metrics),
            f'{what}=[["accuracy"], ["mae"]], or a dict of lists by output name',
        )
    return {name: _as_list(item) for name, item in zip(outputs, metrics, strict=True)}


def _named(metrics: Any, output: Any, names: list[str], in_keras: bool) -> Iterator[tuple[str, MetricLike]]:
    """Yield the metrics of one output with their names."""
    if in_keras and _is_list(metrics):
        for item in metrics:
            if is_keras_metric(item):
                yield metric_name(item), CompileMetric(item, output, names)
            else:
                yield from _named_by_us([item], output, names)
    elif in_keras and isinstance(metrics, dict):
        for name, item in metrics.items():
            if item in _KERAS_MEANING:
                yield name, CompileMetric(item, output, names)
            else:
                yield from _named_by_us({name: item}, output, names)
    elif in_keras and isinstance(metrics, (set, frozenset)):
        own = as_metrics(metrics)  # in the order of names
        yield from ((name, CompileMetric(name) if name in _KERAS_MEANING else item) for name, item in own.items())
    else:
        yield from _named_by_us(metrics, output, names)


def _named_by_us(metrics: Any, output: Any, names: list[str]) -> Iterator[tuple[str, MetricLike]]:
    for name, metric in as_metrics(metrics).items():
        yield name, metric if output is None else OutputMetric(metric, output, names)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
