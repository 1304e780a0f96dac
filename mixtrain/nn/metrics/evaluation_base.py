"""`EvaluationBase`: the base class of classification metrics, with checks of predictions and labels."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mixtrain import checks
from mixtrain.nn.metrics.host_metric import HostMetric, is_one_hot

EvalType = Literal["classification", "multilabel"]


class EvaluationBase(HostMetric):
    """Base class of classification and multilabel metrics; `eval_type` is that of `Accuracy`.

    Example:
        >>> EvaluationBase("multilabel").eval_type
        'multilabel'
    """

    def __init__(self, eval_type: EvalType) -> None:
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise checks.fail_type(
                type(self).__name__, 'eval_type must be "classification" or "multilabel"', eval_type,
                'eval_type="classification"',
            )
        self._type = eval_type
        self._class_num = 0

    @property
    def eval_type(self) -> EvalType:
        """ "classification" or "multilabel"."""
        return self._type

    @property
    def _where(self) -> str:
        return f"{type(self).__name__}.update"

    def _class_numbers(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Convert classification labels to class indices (N, ...)."""
        self._check_classes(predictions)
        if labels.shape == predictions.shape and is_one_hot(labels):
            labels = labels.argmax(axis=1)
        elif predictions.ndim == 2 and labels.shape == (len(predictions), 1):
            labels = labels[:, 0]
        expected = (*predictions.shape[:1], *predictions.shape[2:])
        if labels.shape != expected:
            raise checks.fail_value(
                self._where, f"labels for predictions {predictions.shape} must be class numbers {expected} or one-hot",
                f"shape {labels.shape}", "class numbers as labels, or a metric of keras.metrics for soft ones",
            )
        return labels

    def _check_multilabel(self, predictions: np.ndarray, labels: np.ndarray) -> None:
        if predictions.shape != labels.shape:
            raise checks.fail_value(
                self._where, f"labels must have the predictions' shape {predictions.shape}", labels.shape,
                'eval_type="classification" for class numbers',
            )
        for name, values in (("predictions", predictions), ("labels", labels)):
            if not np.all((values == 0) | (values == 1)):
                raise checks.fail_value(
                    self._where, f"{name} must be 0 or 1 with multilabel", values.flat[0],
                    "(predictions > 0.5).astype(int)",
                )
        self._check_classes(predictions, at_least=1)

    def _check_classes(self, predictions: np.ndarray, at_least: int = 2) -> None:
        classes = predictions.shape[1] if predictions.ndim > 1 else 0
        if classes < at_least:
            raise checks.fail_value(
                self._where, f"predictions must have shape (N, C, ...) with C at least {at_least}",
                predictions.shape, "metrics={'accuracy': keras.metrics.BinaryAccuracy()} for one output a row",
            )
        if self._class_num not in (0, classes):
            raise checks.fail_value(
                self._where, f"predictions had {self._class_num} classes so far", f"{classes} classes",
                "clear() before other predictions",
            )
        self._class_num = classes
