"""`KerasMetric`: an adapter of Keras metrics to `Metric`."""

from __future__ import annotations

from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.metrics.metric import Metric, SparseLabels, class_indices, rearrange_inputs
from mixtrain.typing import TensorLike

# Keras metrics that interpret labels as class indices.
SPARSE_METRICS: Final = (
    keras.metrics.SparseCategoricalAccuracy,
    keras.metrics.SparseTopKCategoricalAccuracy,
    keras.metrics.SparseCategoricalCrossentropy,
)


class KerasMetric(Metric):
    """Adapter of a `keras.metrics.Metric`: ``update(predictions, labels)`` calls ``update_state(labels, predictions)``.

    Args: metric: The Keras metric. A metric of one value, such as `keras.metrics.Mean`, is updated with one input.

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
        self.metric.reset_state()

    @rearrange_inputs
    def update(self, *inputs: TensorLike) -> None:
        """Update the metric with predictions and labels, or with one value."""
        self.metric.update_state(*reversed(inputs))

    def _sparse_labels(self, *inputs: TensorLike) -> SparseLabels | None:
        if not isinstance(self.metric, SPARSE_METRICS):
            return None
        predictions, labels = inputs
        return class_indices(predictions, labels, axis=-1)

    def eval(self) -> Any:
        """Return the value: a float, or an array or dict if the Keras metric returns one."""
        return keras.tree.map_structure(_to_numpy, self.metric.result())


def _to_numpy(value: Any) -> Any:
    array = backend.to_numpy(value)
    return float(array) if array.ndim == 0 else array
