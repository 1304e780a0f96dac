"""What evaluation asks of a metric: the base class, the adapter of Keras's metrics, and lookup by name."""

from mixtrain.metrics.factory import MetricsLike, as_metrics
from mixtrain.metrics.keras_metric import KerasMetric
from mixtrain.metrics.metric import Metric, MetricLike, rearrange_inputs

__all__ = [
    "KerasMetric", "Metric", "MetricLike", "MetricsLike", "as_metrics", "rearrange_inputs",
]
