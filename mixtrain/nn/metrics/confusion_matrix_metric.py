"""`ConfusionMatrixMetric`: a metric from the entries of binary confusion matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np

from mixtrain import checks
from mixtrain.metrics.metric import rearrange_inputs
from mixtrain.nn.metrics.confusion_ratios import Counts, ratio_by_name
from mixtrain.nn.metrics.host_metric import HostMetric
from mixtrain.typing import TensorLike

Decrease = Literal["none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel"]


class ConfusionMatrixMetric(HostMetric):
    """A ratio such as sensitivity, computed from total counts or averaged over images.

    Args:
        skip_channel: False excludes the first class, the background, if there are two or more.
        metric_name: The ratio: "sensitivity", "specificity", "precision", "accuracy", "f1_score",
            "matthews_correlation_coefficient", ... or its short name ("tpr", "tnr", "ppv", "acc", "f1", "mcc", ...).
        calculation_method: True computes the ratio of each row and class and then reduces them, for images
            (N, C, H, W, ...); False computes it from the total counts.
        decrease: Reduction of the ratios of rows and classes: "mean" (over classes, then over rows) or "sum"; "none",
            "mean_batch", "sum_batch", "mean_channel" and "sum_channel" keep an axis, which must have one entry.

    Example:
        >>> metric = ConfusionMatrixMetric(metric_name="tpr")
        >>> metric([[[0], [1]], [[0], [1]]], [[[0], [1]], [[1], [0]]]).tolist()
        [0.5]
    """

    def __init__(
        self, skip_channel: bool = True, metric_name: str = "sensitivity", calculation_method: bool = False,
        decrease: Decrease = "mean",
    ) -> None:
        super().__init__()
        where = type(self).__name__
        self.skip_channel = checks.boolean(where, "skip_channel", skip_channel)
        self.calculation_method = checks.boolean(where, "calculation_method", calculation_method)
        self.metric_name = metric_name
        self._ratio = ratio_by_name(where, metric_name)
        self.decrease = checks.one_of(where, "decrease", decrease, tuple(_DECREASES))
        self.clear()

    def clear(self) -> None:
        self._batches = 0
        self._counts = np.zeros(4)
        self._sum = 0.0
        self._num_ratios = 0

    @rearrange_inputs
    def update(self, *inputs: TensorLike) -> None:
        """Update the metric with one batch. `inputs`: predictions and labels of one shape (N, C, ...), all 0 or 1."""
        predictions, labels = self._pair(inputs)
        counts = self._count(predictions, labels)
        self._batches += 1
        if not self.calculation_method:
            self._counts += counts.sum(axis=(0, 1))
            return
        ratios = self._ratio(Counts(*np.moveaxis(counts, -1, 0)))
        known = ~np.isnan(ratios)
        value, count = _DECREASES[self.decrease](np.where(known, ratios, 0.0), known.astype(float))
        if value.size != 1:
            raise checks.fail_value(
                type(self).__name__, f'decrease="{self.decrease}" must leave one value', f"{value.size} values",
                'decrease="mean"',
            )
        self._sum += value.item() * int(count.item())
        self._num_ratios += int(count.item())

    def eval(self) -> Any:
        """Compute the ratio: an array of one value, or with `calculation_method` a float."""
        if self.calculation_method:
            return self._mean(self._sum, self._num_ratios)
        self._check_updated(self._batches)
        return self._ratio(Counts(*self._counts[:, np.newaxis]))

    def _count(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Count tp, fp, tn and fn of each row and class; return (N, C, 4)."""
        where = f"{type(self).__name__}.update"
        min_rank = 3 if self.calculation_method else 2
        if predictions.ndim < min_rank or predictions.shape != labels.shape:
            raise checks.fail_value(
                where, f"predictions and labels must have one shape (N, C, ...) with {min_rank} axes or more",
                f"{predictions.shape} and {labels.shape}", "one-hot predictions and labels",
            )
        if not np.all((labels == 0) | (labels == 1)):
            raise checks.fail_value(where, "labels must be 0 or 1", labels.max(), "one-hot labels")
        first = 0 if self.skip_channel or labels.shape[1] == 1 else 1
        shape = (*labels[:, first:].shape[:2], -1)
        predicted, actual = (values[:, first:].astype(float).reshape(shape) for values in (predictions, labels))
        tp, tn = (predicted + actual == 2).sum(axis=2), (predicted + actual == 0).sum(axis=2)
        positives = actual.sum(axis=2)
        negatives = actual.shape[2] - positives
        return np.stack([tp, negatives - tn, tn, positives - tp], axis=-1).astype(float)


def _mean_over(values: np.ndarray, known: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of the known values along an axis, and their number."""
    count = known.sum(axis=axis)
    total = values.sum(axis=axis)
    return np.divide(total, count, out=np.zeros_like(total), where=count > 0), count


def _mean(values: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over classes, then over the rows with a known class."""
    row_means, count = _mean_over(values, known, 1)
    return _mean_over(row_means, (count > 0).astype(float), 0)


def _sum_over(axis: int | tuple[int, ...]) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    return lambda values, known: (values.sum(axis=axis), known.sum(axis=axis))


# Functions of the ratios (0 where unknown) and of the mask of known ones, to the reduced value and its count.
_DECREASES: Final[dict[str, Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]]] = {
    "none": lambda values, known: (values, known),
    "mean": _mean,
    "sum": _sum_over((0, 1)),
    "mean_batch": lambda values, known: _mean_over(values, known, 0),
    "sum_batch": _sum_over(0),
    "mean_channel": lambda values, known: _mean_over(values, known, 1),
    "sum_channel": _sum_over(1),
}
