"""`ROC` and `auc`: receiver operating characteristic and area under a curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.metrics.metric import rearrange_inputs
from mixtrain.nn.metrics.host_metric import HostMetric
from mixtrain.typing import TensorLike

Curve = tuple[np.ndarray, np.ndarray, np.ndarray]


class ROC(HostMetric):
    """The receiver operating characteristic over all batches.

    Args:
        class_num: Number of classes, for predictions (N, C); None or 1 for predictions of the labels' shape.
        pos_label: Positive label with one class; None for 1.

    Example:
        >>> fpr, tpr, thresholds = ROC(pos_label=1)([0.1, 0.4, 0.8], [0, 1, 1])
        >>> fpr.tolist(), tpr.tolist()
        ([0.0, 0.0, 0.0, 1.0], [0.0, 0.5, 1.0, 1.0])
    """

    def __init__(self, class_num: int | None = None, pos_label: int | None = None) -> None:
        super().__init__()
        self.class_num = None if class_num is None else checks.integer("ROC", "class_num", class_num, at_least=1)
        self.pos_label = None if pos_label is None else checks.integer("ROC", "pos_label", pos_label, at_least=0)
        self.clear()

    def clear(self) -> None:
        self._predictions: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    @rearrange_inputs
    def update(self, *inputs: TensorLike) -> None:
        """Update the metric with one batch.

        Args: inputs: Scores of the labels' shape, or (N, C) with `class_num` C; and labels, class indices.
        """
        predictions, labels = self._pair(inputs)
        multiclass = self.class_num not in (None, 1)
        if multiclass:
            matches = predictions.shape == (*labels.shape[:1], self.class_num) and labels.ndim == 1
            expected = f"shape (N, {self.class_num}) for labels (N,)"
        else:
            matches, expected = predictions.shape == labels.shape, "the labels' shape"
        if not matches:
            raise checks.fail_value(
                "ROC.update", f"predictions must have {expected}", f"{predictions.shape} and {labels.shape}",
                "ROC(class_num=C) for scores (N, C)",
            )
        self._predictions.append(predictions if multiclass else predictions.reshape(-1))
        self._labels.append(labels.reshape(-1))

    def eval(self) -> Any:
        """Return false positive rates, true positive rates and thresholds; lists with one per class if several.

        Raises: ValueError: No label, or every label, belongs to one class.
        """
        self._check_updated(len(self._labels))
        predictions, labels = np.concatenate(self._predictions), np.concatenate(self._labels)
        if predictions.ndim == 1:
            return _curve(predictions, labels == (1 if self.pos_label is None else self.pos_label))
        curves = [_curve(predictions[:, index], labels == index) for index in range(predictions.shape[1])]
        return tuple(list(part) for part in zip(*curves, strict=True))


def _curve(scores: np.ndarray, positive: np.ndarray) -> Curve:
    """Return the rates at decreasing thresholds, starting above the maximum score."""
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    # The last index of each run of equal scores.
    last = np.append(np.flatnonzero(np.diff(scores)), scores.size - 1)
    tp = np.cumsum(positive)[last]
    fp = 1 + last - tp
    if tp[-1] == 0 or fp[-1] == 0:
        raise checks.fail_value(
            "ROC.eval", "each class must have labels of it and others", f"{tp[-1]} of it and {fp[-1]} others",
            "more batches before eval()",
        )
    start = np.zeros(1)
    thresholds = np.append(scores[:1] + 1, scores[last])
    return np.append(start, fp / fp[-1]), np.append(start, tp / tp[-1]), thresholds


def auc(x: TensorLike, y: TensorLike, reorder: bool = False) -> float:
    """Compute the area under the curve of arrays `x`, monotonic, and `y`, both (N,), by the trapezoidal rule.

    Args: reorder: Whether to sort the points by x first.
    Returns: The area.

    Example:
        >>> auc(np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 1.0]))
        0.75
    """
    for name, values in (("x", x), ("y", y)):
        checks.instance("auc", name, values, np.ndarray, f"np.array({name})")
        if values.ndim not in (1, 2) or values.size != len(values):
            raise checks.fail_value("auc", f"{name} must have shape (N,)", values.shape, f"{name}.reshape(-1)")
    x, y = x.reshape(-1), y.reshape(-1)
    if x.size != y.size or x.size < 2:
        raise checks.fail_value("auc", "x and y must have as many points, 2 or more", f"{x.size} and {y.size}", "both")
    if reorder:
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
    steps = np.diff(x)
    if np.any(steps < 0) and np.any(steps > 0):
        raise checks.fail_value("auc", "x must rise or fall", x.tolist(), "reorder=True")
    return float(np.trapezoid(y, x)) * (-1.0 if np.any(steps < 0) else 1.0)
