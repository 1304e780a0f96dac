"""`ConfusionMatrix`: counts of each pair of label and prediction."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mixtrain import checks
from mixtrain.metrics.metric import rearrange_inputs
from mixtrain.nn.metrics.host_metric import HostMetric
from mixtrain.typing import TensorLike

Normalize = Literal["no_norm", "target", "prediction", "all"]
# The axes that are summed to get the divisor of the counts.
_AXES: dict[str, Any] = {"target": 1, "prediction": 0, "all": None}


class ConfusionMatrix(HostMetric):
    """Counts by label (rows) and prediction (columns).

    Args:
        num_classes: Number of classes, at least 1.
        normalize: Divisor of the counts: "no_norm" for none, "target" for the sum of the row, "prediction" for the sum
            of the column, "all" for the total; the result is 0 where the divisor is 0.
        threshold: Minimum float prediction of the labels' shape that is class 1.

    Example:
        >>> ConfusionMatrix(2)([0, 1, 1], [0, 1, 0]).tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """

    def __init__(self, num_classes: int, normalize: Normalize = "no_norm", threshold: float = 0.5) -> None:
        super().__init__()
        where = type(self).__name__
        self.num_classes = checks.integer(where, "num_classes", num_classes, at_least=1, example=10)
        self.normalize = checks.one_of(where, "normalize", normalize, ("no_norm", *_AXES))
        self.threshold = checks.number(where, "threshold", threshold, example=0.5)
        self.clear()

    def clear(self) -> None:
        self.confusion_matrix = np.zeros((self.num_classes, self.num_classes))
        self._batches = 0

    @rearrange_inputs
    def update(self, *inputs: TensorLike) -> None:
        """Update the metric with one batch.

        Args: inputs: Predictions: scores (N, C, ...), or of the labels' shape: class indices, or floats that are
            compared with `threshold`; and labels (N, ...), class indices.
        """
        predictions, labels = self._pair(inputs)
        where = f"{type(self).__name__}.update"
        if predictions.ndim == labels.ndim + 1:
            predictions = predictions.argmax(axis=1)
        elif predictions.dtype.kind == "f":
            predictions = predictions >= self.threshold
        if predictions.shape != labels.shape:
            raise checks.fail_value(
                where, f"labels must have the predictions' shape {predictions.shape}", labels.shape,
                "scores (N, C) or class numbers (N,) as predictions, and class numbers (N,) as labels",
            )
        predicted, actual = predictions.reshape(-1).astype(int), labels.reshape(-1).astype(int)
        for name, values in (("predictions", predicted), ("labels", actual)):
            invalid = values[(values < 0) | (values >= self.num_classes)]
            if invalid.size:
                raise checks.fail_value(
                    where, f"{name} must be classes 0 to {self.num_classes - 1}", int(invalid[0]),
                    f"ConfusionMatrix({int(values.max()) + 1})",
                )
        counts = np.bincount(actual * self.num_classes + predicted, minlength=self.num_classes**2)
        self.confusion_matrix += counts.reshape(self.num_classes, self.num_classes)
        self._batches += 1

    def eval(self) -> np.ndarray:
        """Compute the matrix, float64 (num_classes, num_classes)."""
        self._check_updated(self._batches)
        matrix = self.confusion_matrix.copy()
        if self.normalize == "no_norm":
            return matrix
        total = np.broadcast_to(matrix.sum(axis=_AXES[self.normalize], keepdims=True), matrix.shape)
        return np.divide(matrix, total, out=np.zeros_like(matrix), where=total != 0)
