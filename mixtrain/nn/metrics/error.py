"""`MAE` and `MSE`: absolute and squared errors, summed over a row and averaged over rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from mixtrain import checks
from mixtrain.metrics.metric import rearrange_inputs
from mixtrain.nn.metrics.host_metric import HostMetric
from mixtrain.typing import TensorLike


class _ErrorPerRow(HostMetric):
    """An error summed over all elements and divided by the number of rows, as in MindSpore, not of elements."""

    _error: ClassVar[Callable[..., np.ndarray]]

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._error_sum = 0.0
        self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs: TensorLike) -> None:
        """Update the metric with one batch. `inputs`: predictions, and labels with the same number of elements."""
        predictions, labels = self._pair(inputs)
        if predictions.size != labels.size or labels.ndim == 0:
            raise checks.fail_value(
                f"{type(self).__name__}.update", f"labels must have the predictions' shape {predictions.shape}",
                labels.shape, "labels of that shape",
            )
        self._error_sum += float(self._error(labels.reshape(predictions.shape) - predictions).sum())
        self._samples_num += len(labels)

    def eval(self) -> float:
        """Compute the error per row."""
        return self._mean(self._error_sum, self._samples_num)


class MAE(_ErrorPerRow):
    """Absolute errors, summed over the elements of a row and averaged over rows.

    Example:
        >>> MAE()([[1.0, 2.0], [3.0, 4.0]], [[1.5, 2.0], [3.0, 3.0]])
        0.75
    """

    _error = staticmethod(np.abs)


class MSE(_ErrorPerRow):
    """Squared errors, summed over the elements of a row and averaged over rows.

    Example:
        >>> MSE()([[1.0, 2.0], [3.0, 4.0]], [[1.5, 2.0], [3.0, 3.0]])
        0.625
    """

    _error = staticmethod(np.square)
