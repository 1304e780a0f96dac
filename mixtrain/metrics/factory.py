"""Lookup of metrics by name, and conversion of the `metrics` argument of `Model` to a dict."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import keras

from mixtrain import checks
from mixtrain.metrics.keras_metric import KerasMetric
from mixtrain.metrics.metric import Metric, MetricLike

# MindSpore's metrics, which are loaded by the first lookup of a name: most users of Keras never name one.
_NAMED_METRICS: Final = "mixtrain.nn.metrics"
# What that package registers: classes and functions by name, and what to write for a class that needs an argument.
_BY_NAME: Final[dict[str, Callable[..., Any]]] = {}
_REQUIRED_ARGUMENTS: Final[dict[Callable[..., Any], str]] = {}
_AnyMetric: TypeAlias = MetricLike | keras.metrics.Metric
# Names and metrics, or a mapping from names to metrics.
MetricsLike: TypeAlias = Iterable[str | _AnyMetric] | Mapping[str, _AnyMetric]

# Functions of `keras.metrics` that are not metrics.
_NOT_METRICS: Final = ("get", "serialize", "deserialize")
_WRITE = 'metrics={"accuracy": Accuracy()}, or a list of names and metrics'


def register_metrics(
    by_name: Mapping[str, Callable[..., Any]], required_arguments: Mapping[Callable[..., Any], str]
) -> None:
    """Add metrics to those that can be named.

    `by_name`: Classes of metrics by name; a function can be called by its name, but is not a metric of a `Model`.
    `required_arguments`: For a class that cannot be created without an argument, an example of its call.
    """
    _BY_NAME.update(by_name)
    _REQUIRED_ARGUMENTS.update(required_arguments)


def metrics_by_name() -> Mapping[str, Callable[..., Any]]:
    """Return what `register_metrics` was called with, after loading the package that does so."""
    importlib.import_module(_NAMED_METRICS)
    return _BY_NAME


def as_metrics(metrics: Any) -> dict[str, MetricLike]:
    """Convert the `metrics` argument of `Model` to a dict from name to metric.

    Args: metrics: None; a dict from name to metric; or a set, list or tuple of names and metrics, or one of them.
    Returns: The metrics; those of a set are sorted by name.

    Example:
        >>> list(as_metrics(["accuracy", "loss"]))
        ['accuracy', 'loss']
    """
    if metrics is None:
        return {}
    if isinstance(metrics, dict):
        for name in metrics:
            if not isinstance(name, str):
                raise checks.fail_type("metrics", "each name must be a str", name, _WRITE)
        return {name: _as_metric(metric) for name, metric in metrics.items()}
    if isinstance(metrics, (str, Metric, keras.metrics.Metric)):
        metrics = [metrics]
    if not isinstance(metrics, Iterable):
        raise checks.fail_type("metrics", "it must be a dict, set or list", metrics, _WRITE)
    items = sorted(metrics, key=_name_of) if isinstance(metrics, (set, frozenset)) else list(metrics)
    result: dict[str, MetricLike] = {}
    for item in items:
        name = _name_of(item)
        if name in result:
            raise checks.fail_value("metrics", "each name must stand for one metric", name, _WRITE)
        result[name] = _as_metric(item)
    return result


def _name_of(item: Any) -> str:
    """Return the name of a metric that is not in a dict."""
    if isinstance(item, str):
        return item
    if isinstance(item, keras.metrics.Metric):
        return str(item.name)
    return next((name for name, metric in _BY_NAME.items() if type(item) is metric), type(item).__name__)


def _as_metric(item: Any) -> MetricLike:
    if isinstance(item, Metric):
        return item
    if isinstance(item, keras.metrics.Metric):
        return KerasMetric(item)
    if not isinstance(item, str):
        raise checks.fail_type("metrics", "each must be a metric or its name", item, _WRITE)
    # Names of MindSpore take precedence: Keras's class Accuracy compares values instead of classes. A function such as
    # "auc" is no metric, so the name resolves to Keras's AUC.
    by_lowercase = {name.lower(): kind for name, kind in metrics_by_name().items() if isinstance(kind, type)}
    metric = by_lowercase.get(item.lower())
    if metric is None:
        return KerasMetric(_keras_metric(item))
    if metric in _REQUIRED_ARGUMENTS:
        raise checks.fail_value(
            "metrics", f"{metric.__name__} needs an argument", item,
            f'metrics={{"{item}": {_REQUIRED_ARGUMENTS[metric]}}}',
        )
    return metric()  # type: ignore[no-any-return]


def _keras_metric(name: str) -> keras.metrics.Metric:
    try:
        metric = keras.metrics.get(name)
    except ValueError:
        metric = None
    if metric is None:
        functions = (item for item, value in vars(keras.metrics).items() if inspect.isfunction(value))
        known = [*sorted(metrics_by_name()), *functions]
        checks.one_of("metrics", "name", name, [item for item in known if item not in _NOT_METRICS])
    if isinstance(metric, keras.metrics.Metric):
        return metric
    return keras.metrics.MeanMetricWrapper(metric, name=name)
