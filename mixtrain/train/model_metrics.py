"""The metrics of a Model as they were written: by mixtrain's names, or as Keras's `compile` takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain import checks
from mixtrain.nn.metrics import KerasMetric, Metric, MetricLike, as_metrics
from mixtrain.nn.metrics.keras_metric import ShapedAccuracy
from mixtrain.nn.step.loss_cell import output_names
from mixtrain.nn.step.output_losses import one_of_outputs, outputs_by_name

# Names that mean Keras's metric where the network and the loss are Keras's.
_KERAS_MEANING: Final[dict[str, Callable[[], MetricLike]]] = {
    "accuracy": ShapedAccuracy,
    "acc": ShapedAccuracy,
    "mse": lambda: KerasMetric(keras.metrics.MeanSquaredError()),
    "mae": lambda: KerasMetric(keras.metrics.MeanAbsoluteError()),
}


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
        outputs, label = inputs
        named = outputs_by_name(outputs, self._names)
        prediction = one_of_outputs("output", named, self._output, list(named))
        self.metric.update(prediction, one_of_outputs("label", label, self._output, list(named)))

    def eval(self) -> Any:
        """Return the metric's value."""
        return self.metric.eval()


def model_metrics(network: Any, loss_fn: Any, metrics: Any) -> dict[str, MetricLike]:
    """Return a Model's metrics by name.

    Args:
        network: The Model's network.
        loss_fn: Its loss; of several outputs it is a dict or list.
        metrics: As `as_metrics` takes them; for a network of several outputs also a dict from output name, or a list,
            of metrics or lists of metrics, which are called ``output_metric``.

    Raises:
        TypeError: One is neither a name nor a metric.
        ValueError: A name is unknown, or stands for two metrics.
    """
    names = output_names(network)
    keras_names = isinstance(network, keras.Layer) and _is_keras_loss(loss_fn)
    by_output = _by_output(names, loss_fn, metrics)
    if by_output is None:
        return as_metrics(_in_keras_words(metrics) if keras_names else metrics)
    found: dict[str, MetricLike] = {}
    for output, given in by_output.items():
        listed = [] if given is None else list(given) if isinstance(given, (list, tuple, set)) else [given]
        for name, metric in as_metrics(_in_keras_words(listed) if keras_names else listed).items():
            found[f"{output}_{name}"] = OutputMetric(metric, output, names)
    return found


def _by_output(names: list[str], loss_fn: Any, metrics: Any) -> dict[Any, Any] | None:
    """Return metrics by output where that is how they are written, else None."""
    outputs: list[Any] = names if len(names) > 1 else list(loss_fn) if isinstance(loss_fn, dict) else []
    if not outputs and isinstance(loss_fn, (list, tuple)):
        outputs = list(range(len(loss_fn)))
    if isinstance(metrics, dict):
        return metrics if metrics and set(metrics) <= set(outputs) else None
    nested = isinstance(metrics, (list, tuple)) and any(isinstance(item, (list, tuple)) for item in metrics)
    if not nested:
        return None
    if len(metrics) != len(outputs):
        raise checks.fail_value(
            "metrics", f"a list of lists must have one for each of the {len(outputs)} outputs", len(metrics),
            'metrics=[["accuracy"], ["mae"]], or a dict of lists by output name',
        )
    return dict(zip(outputs, metrics, strict=True))


def _is_keras_loss(loss_fn: Any) -> bool:
    if isinstance(loss_fn, dict):
        return all(map(_is_keras_loss, loss_fn.values()))
    if isinstance(loss_fn, (list, tuple)):
        return all(map(_is_keras_loss, loss_fn))
    return loss_fn is None or isinstance(loss_fn, (str, keras.losses.Loss))


def _in_keras_words(metrics: Any) -> Any:
    """Return metrics as a dict where Keras's names have become Keras's metrics; what is no such list stays."""
    if isinstance(metrics, str):
        metrics = [metrics]
    if isinstance(metrics, dict):
        return {name: _keras_meaning(item) for name, item in metrics.items()}
    if not isinstance(metrics, (list, tuple, set, frozenset)):
        return metrics
    if not any(isinstance(item, str) and item in _KERAS_MEANING for item in metrics):
        return metrics
    by_name = as_metrics(metrics)
    return {name: _keras_meaning(name) if name in metrics else item for name, item in by_name.items()}


def _keras_meaning(item: Any) -> Any:
    return _KERAS_MEANING[item]() if isinstance(item, str) and item in _KERAS_MEANING else item
