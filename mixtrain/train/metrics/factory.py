"""Metrics by name, and whatever `Model(metrics=...)` takes made into one mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import keras

from mixtrain import checks
from mixtrain.train.metrics.accuracy import Accuracy
from mixtrain.train.metrics.error import MAE, MSE
from mixtrain.train.metrics.keras_metric import KerasMetric
from mixtrain.train.metrics.loss import Loss
from mixtrain.train.metrics.metric import Metric, MetricLike
from mixtrain.train.metrics.topk import Top1CategoricalAccuracy, Top5CategoricalAccuracy, TopKCategoricalAccuracy

_BY_NAME: Final[dict[str, Callable[..., Metric]]] = {
    "accuracy": Accuracy,
    "acc": Accuracy,
    "loss": Loss,
    "mae": MAE,
    "mse": MSE,
    "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy,
    "topk": TopKCategoricalAccuracy,
}
_WRITE = 'metrics={"accuracy": Accuracy()}, or a list of names and metrics'


def names() -> list[str]:
    """Return the names that `get_metric_fn` knows, sorted.

    Example:
        >>> names()
        ['acc', 'accuracy', 'loss', 'mae', 'mse', 'top_1_accuracy', 'top_5_accuracy', 'topk']

    Source: MindSpore, `mindspore.train.names`.
    """
    return sorted(_BY_NAME)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Metric:
    """Make a metric by its name.

    Args:
        name: One of `names`.
        *args: What its class takes.
        **kwargs: What its class takes by name.

    Raises:
        ValueError: The name is unknown; the error offers the nearest one.

    Example:
        >>> type(get_metric_fn("topk", 3)).__name__
        'TopKCategoricalAccuracy'

    Source: MindSpore, `mindspore.train.get_metric_fn`.
    """
    checks.one_of("get_metric_fn", "name", name, names())
    return _BY_NAME[name](*args, **kwargs)


def as_metrics(metrics: Any) -> dict[str, MetricLike]:
    """Return metrics by name.

    Args:
        metrics: None; a dict from name to metric; or a set, list or tuple of names and metrics, or one of them. A
            metric is a `Metric`, a `keras.metrics.Metric`, or the name of either ("accuracy", "loss", "top_5_accuracy",
            "AUC", "sparse_categorical_accuracy", ...).

    Returns:
        The metrics; a set's in the order of their names.

    Raises:
        TypeError: One is neither a name nor a metric.
        ValueError: A name is unknown, or stands for two metrics.

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
    listed = sorted(metrics, key=_name_of) if isinstance(metrics, (set, frozenset)) else list(metrics)
    found: dict[str, MetricLike] = {}
    for item in listed:
        name = _name_of(item)
        if name in found:
            raise checks.fail_value("metrics", "each name must stand for one metric", name, _WRITE)
        found[name] = _as_metric(item)
    return found


def _name_of(item: Any) -> str:
    """Return the name that a metric outside a dict goes by."""
    if isinstance(item, str):
        return item
    if isinstance(item, keras.metrics.Metric):
        return str(item.name)
    return next((name for name, kind in _BY_NAME.items() if type(item) is kind), type(item).__name__)


def _as_metric(item: Any) -> MetricLike:
    if isinstance(item, Metric):
        return item
    if isinstance(item, keras.metrics.Metric):
        return KerasMetric(item)
    if isinstance(item, str):
        # "Accuracy" is MindSpore's too, not Keras's class of that name, which compares values.
        own = _BY_NAME.get(item.lower())
        return KerasMetric(_keras_metric(item)) if own is None else own()
    raise checks.fail_type("metrics", "each must be a metric or its name", item, _WRITE)


def _keras_metric(name: str) -> keras.metrics.Metric:
    try:
        found = keras.metrics.get(name)
    except ValueError:
        checks.one_of("metrics", "name", name, names())
        raise
    if isinstance(found, keras.metrics.Metric):
        return found
    return keras.metrics.MeanMetricWrapper(found, name=name)
