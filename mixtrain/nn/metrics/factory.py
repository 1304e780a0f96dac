"""Lookup of metrics by name, and conversion of the `metrics` argument of `Model` to a dict."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import keras

from mixtrain import checks
from mixtrain.nn.metrics.accuracy import Accuracy
from mixtrain.nn.metrics.bleu_score import BleuScore
from mixtrain.nn.metrics.class_counts import F1, Precision, Recall
from mixtrain.nn.metrics.confusion_matrix import ConfusionMatrix
from mixtrain.nn.metrics.confusion_matrix_metric import ConfusionMatrixMetric
from mixtrain.nn.metrics.error import MAE, MSE
from mixtrain.nn.metrics.keras_metric import KerasMetric
from mixtrain.nn.metrics.loss import Loss
from mixtrain.nn.metrics.metric import Metric, MetricLike
from mixtrain.nn.metrics.occlusion_sensitivity import OcclusionSensitivity
from mixtrain.nn.metrics.perplexity import Perplexity
from mixtrain.nn.metrics.roc import ROC, auc
from mixtrain.nn.metrics.similarity import CosineSimilarity, Dice
from mixtrain.nn.metrics.surface_distance import HausdorffDistance, MeanSurfaceDistance, RootMeanSquareDistance
from mixtrain.nn.metrics.topk import Top1CategoricalAccuracy, Top5CategoricalAccuracy, TopKCategoricalAccuracy

_BY_NAME: Final[dict[str, Callable[..., Any]]] = {
    "F1": F1,
    "accuracy": Accuracy,
    "acc": Accuracy,
    "auc": auc,
    "bleu_score": BleuScore,
    "confusion_matrix": ConfusionMatrix,
    "confusion_matrix_metric": ConfusionMatrixMetric,
    "cosine_similarity": CosineSimilarity,
    "dice": Dice,
    "hausdorff_distance": HausdorffDistance,
    "loss": Loss,
    "mae": MAE,
    "mean_surface_distance": MeanSurfaceDistance,
    "mse": MSE,
    "occlusion_sensitivity": OcclusionSensitivity,
    "perplexity": Perplexity,
    "precision": Precision,
    "recall": Recall,
    "roc": ROC,
    "root_mean_square_distance": RootMeanSquareDistance,
    "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy,
    "topk": TopKCategoricalAccuracy,
}
# By lowercase name. "auc" is excluded: here it is a function of a curve, so the name resolves to Keras's AUC.
_METRICS: Final[dict[str, type[Metric]]] = {
    name.lower(): item for name, item in _BY_NAME.items() if isinstance(item, type)
}
_REQUIRED_ARGUMENTS: Final = {
    TopKCategoricalAccuracy: "TopKCategoricalAccuracy(5)", ConfusionMatrix: "ConfusionMatrix(num_classes=10)",
}
_AnyMetric: TypeAlias = MetricLike | keras.metrics.Metric
# Names and metrics, or a mapping from names to metrics.
MetricsLike: TypeAlias = Iterable[str | _AnyMetric] | Mapping[str, _AnyMetric]

# Functions of `keras.metrics` that are not metrics.
_NOT_METRICS: Final = ("get", "serialize", "deserialize")
_WRITE = 'metrics={"accuracy": Accuracy()}, or a list of names and metrics'


def names() -> list[str]:
    """Return the sorted names that `get_metric_fn` accepts.

    Example:
        >>> names()[:4]
        ['F1', 'acc', 'accuracy', 'auc']
    """
    return sorted(_BY_NAME)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Any:
    """Create a metric by name; "auc" calls the function.

    Args:
        name: One of `names`.
        *args: Positional arguments of its class.
        **kwargs: Keyword arguments of its class.

    Example:
        >>> type(get_metric_fn("topk", 3)).__name__
        'TopKCategoricalAccuracy'
    """
    checks.one_of("get_metric_fn", "name", name, names())
    return _BY_NAME[name](*args, **kwargs)


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
    # Names of MindSpore take precedence: Keras's class Accuracy compares values instead of classes.
    metric = _METRICS.get(item.lower())
    if metric is None:
        return KerasMetric(_keras_metric(item))
    if metric in _REQUIRED_ARGUMENTS:
        raise checks.fail_value(
            "metrics", f"{metric.__name__} needs an argument", item,
            f'metrics={{"{item}": {_REQUIRED_ARGUMENTS[metric]}}}',
        )
    return metric()


def _keras_metric(name: str) -> keras.metrics.Metric:
    try:
        metric = keras.metrics.get(name)
    except ValueError:
        metric = None
    if metric is None:
        known = [*names(), *(item for item, value in vars(keras.metrics).items() if inspect.isfunction(value))]
        checks.one_of("metrics", "name", name, [item for item in known if item not in _NOT_METRICS])
    if isinstance(metric, keras.metrics.Metric):
        return metric
    return keras.metrics.MeanMetricWrapper(metric, name=name)
