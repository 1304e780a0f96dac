"""`TopKCategoricalAccuracy` and its variants for k of 1 and 5."""

from __future__ import annotations

import numpy as np

from mixtrain import checks
from mixtrain.metrics.metric import SparseLabels, class_indices, rearrange_inputs
from mixtrain.nn.metrics.host_metric import HostMetric, is_one_hot
from mixtrain.typing import TensorLike


class TopKCategoricalAccuracy(HostMetric):
    """The fraction of rows whose label is among the k largest predictions; ties are resolved by index.

    Args: k: Number of predictions to consider, at least 1.

    Example:
        >>> TopKCategoricalAccuracy(2)([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]], [1, 2])
        0.5
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = checks.integer(type(self).__name__, "k", k, at_least=1, example=5)
        self.clear()

    def clear(self) -> None:
        self._correct_num = 0
        self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs: TensorLike) -> None:
        """Update the metric with one batch.

        Args: inputs: Predictions (N, C), and labels: class indices (N,) or (N, 1), or one-hot (N, C).
        """
        predictions, labels = self._pair(inputs)
        where = f"{type(self).__name__}.update"
        if predictions.ndim != 2 or predictions.shape[1] < self.k:
            raise checks.fail_value(
                where, f"predictions must have shape (N, C) with C at least k={self.k}", predictions.shape,
                "TopKCategoricalAccuracy(k) with a smaller k",
            )
        if labels.ndim == 2 and labels.shape[1] > 1 and len(labels) == len(predictions) and is_one_hot(labels):
            labels = labels.argmax(axis=1)
        if labels.shape not in ((len(predictions),), (len(predictions), 1)):
            raise checks.fail_value(
                where, f"labels must be class numbers ({len(predictions)},) or one-hot", labels.shape,
                "class numbers as labels",
            )
        top_k = np.argsort(-predictions, axis=1, kind="stable")[:, : self.k]
        self._correct_num += int((top_k == labels.reshape(-1, 1)).sum())
        self._samples_num += len(predictions)

    def _sparse_labels(self, *inputs: TensorLike) -> SparseLabels | None:
        return class_indices(*inputs)

    def eval(self) -> float:
        """Compute the fraction of correct rows."""
        return self._mean(self._correct_num, self._samples_num)


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """The fraction of rows whose label is the largest prediction.

    Example:
        >>> Top1CategoricalAccuracy()([[0.1, 0.9], [0.8, 0.2]], [1, 1])
        0.5
    """

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """The fraction of rows whose label is among the five largest predictions.

    Example:
        >>> Top5CategoricalAccuracy()([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]], [0])
        0.0
    """

    def __init__(self) -> None:
        super().__init__(5)
