"""Evaluation metrics: MindSpore's, and Keras's in the same place."""

from mixtrain.train.metrics.accuracy import Accuracy
from mixtrain.train.metrics.error import MAE, MSE
from mixtrain.train.metrics.factory import as_metrics, get_metric_fn, names
from mixtrain.train.metrics.keras_metric import KerasMetric
from mixtrain.train.metrics.loss import Loss
from mixtrain.train.metrics.metric import Metric, MetricLike, rearrange_inputs
from mixtrain.train.metrics.topk import Top1CategoricalAccuracy, Top5CategoricalAccuracy, TopKCategoricalAccuracy

__all__ = [
    "MAE",
    "MSE",
    "Accuracy",
    "KerasMetric",
    "Loss",
    "Metric",
    "MetricLike",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "as_metrics",
    "get_metric_fn",
    "names",
    "rearrange_inputs",
]
