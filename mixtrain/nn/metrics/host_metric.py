"""`HostMetric`: what MindSpore's metrics share: a check of two inputs, and means over rows or batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.metrics.metric import Metric


class HostMetric(Metric):
    """Base class of metrics that are computed by NumPy on the host."""

    def _pair(self, inputs: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Check that there are two inputs, predictions and labels, and convert them to arrays."""
        if len(inputs) != 2:
            raise checks.fail_value(
                f"{type(self).__name__}.update", "it takes 2 inputs, predictions and labels", f"{len(inputs)} inputs",
                "update(predictions, labels), or set_indexes([...]) to choose two",
            )
        return self._convert_data(inputs[0]), self._convert_data(inputs[1])

    def _check_updated(self, count: int) -> None:
        """Raise a RuntimeError if `count`, the number of batches or rows since `clear`, is 0."""
        if count == 0:
            raise RuntimeError(
                f"{type(self).__name__}.eval: expected at least one batch; got none. Write update(...) before eval()."
            )

    def _mean(self, total: float, count: int) -> float:
        """Return the mean over `count` rows or batches; a RuntimeError if there are none."""
        self._check_updated(count)
        return float(total) / count


def is_one_hot(labels: np.ndarray) -> bool:
    """Whether labels (N, C, ...) are one-hot along axis 1."""
    binary = labels.ndim > 1 and bool(np.all((labels == 0) | (labels == 1)))
    return binary and bool(np.all(labels.sum(axis=1) == 1))
