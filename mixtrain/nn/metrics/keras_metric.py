"""`KerasMetric`: a Keras metric that is updated and read as mixtrain's are."""

from __future__ import annotations

from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.nn.metrics.metric import Metric, SparseLabels, class_numbers, rearrange_inputs

# Keras's metrics that read labels as class numbers.
SPARSE_METRICS: Final = (
    keras.metrics.SparseCategoricalAccuracy,
    keras.metrics.SparseTopKCategoricalAccuracy,
    keras.metrics.SparseCategoricalCrossentropy,
)


class KerasMetric(Metric):
    """Wraps a `keras.metrics.Metric`: ``update(predictions, labels)`` calls ``update_state(labels, predictions)``.

    Args:
        metric: The Keras metric; a metric of one value, such as `keras.metrics.Mean`, is updated with one input.

    Example:
        >>> import keras, numpy as np
        >>> metric = KerasMetric(keras.metrics.BinaryAccuracy())
        >>> metric(np.array([0.9, 0.8]), np.array([1.0, 0.0]))
        0.5
    """

    def __init__(self, metric: keras.metrics.Metric) -> None:
        super().__init__()
        self.metric = metric

    def clear(self) -> None:
        """Forget what was gathered."""
        self.metric.reset_state()

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take in one batch: predictions and labels, or one value."""
        self.metric.update_state(*reversed(inputs))

    def _sparse_labels(self, *inputs: Any) -> SparseLabels | None:
        if not isinstance(self.metric, SPARSE_METRICS):
            return None
        predictions, labels = inputs
        return class_numbers(predictions, labels, axis=-1)

    def eval(self) -> Any:
        """Return the metric's value: a float, or an array or dict where Keras gives one."""
        return keras.tree.map_structure(_plain, self.metric.result())


def _plain(value: Any) -> Any:
    array = backend.to_numpy(value)
    return float(array) if array.ndim == 0 else array
