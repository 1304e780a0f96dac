"""`KerasMetric`: a Keras metric that is updated and read as mixtrain's are."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import engine
from mixtrain.nn.metrics.metric import Metric, rearrange_inputs


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

    def eval(self) -> Any:
        """Return the metric's value: a float, or an array or dict where Keras gives one."""
        return keras.tree.map_structure(_plain, self.metric.result())


def _plain(value: Any) -> Any:
    array = engine.to_numpy(value)
    return float(array) if array.ndim == 0 else array


class ShapedAccuracy(Metric):
    """Keras's accuracy, chosen by the shapes of the first batch as `keras.Model.compile` chooses it.

    Example:
        >>> import numpy as np
        >>> metric = ShapedAccuracy()
        >>> metric(np.array([[0.9], [0.2]]), np.array([1.0, 1.0]))
        0.5
    """

    def __init__(self) -> None:
        super().__init__()
        self._metric: keras.metrics.Metric | None = None

    def clear(self) -> None:
        """Forget what was gathered, and which accuracy it was."""
        self._metric = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take in one batch: predictions (N, ..., C) and labels, class numbers or one-hot; or (N, ..., 1) and 0, 1."""
        predictions, labels = map(engine.to_tensor, inputs)
        if self._metric is None:
            self._metric = _accuracy_for(tuple(predictions.shape), tuple(labels.shape))
        self._metric.update_state(labels, predictions)

    def eval(self) -> Any:
        """Return the share of correct predictions."""
        if self._metric is None:
            raise RuntimeError("accuracy: update must be called before eval; got no batch. Write metric.update(y, t).")
        return _plain(self._metric.result())


def _accuracy_for(predictions: tuple[int, ...], labels: tuple[int, ...]) -> keras.metrics.Metric:
    if predictions[-1] == 1 or len(predictions) == 1:
        return keras.metrics.BinaryAccuracy()
    if len(labels) < len(predictions) or labels[-1] == 1:
        return keras.metrics.SparseCategoricalAccuracy()
    return keras.metrics.CategoricalAccuracy()
