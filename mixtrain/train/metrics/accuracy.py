"""`Accuracy`: the share of rows that are classified rightly."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mixtrain import checks
from mixtrain.train.metrics.metric import Metric, is_one_hot, rearrange_inputs

EvalType = Literal["classification", "multilabel"]


class Accuracy(Metric):
    """The share of right predictions.

    Args:
        eval_type: "classification": predictions (N, C, ...), of which the greatest along axis 1 counts; labels are
            class numbers (N, ...) or (N, 1), or one-hot of the predictions' shape. "multilabel": predictions and
            labels of one shape (N, C, ...), all 0 or 1; a row counts where all its labels are right.

    Raises:
        TypeError: `eval_type` is another.

    Example:
        >>> metric = Accuracy()
        >>> metric([[0.2, 0.8], [0.9, 0.1]], [1, 1])
        0.5

    Source: MindSpore, `mindspore.train.Accuracy`.
    """

    def __init__(self, eval_type: EvalType = "classification") -> None:
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise checks.fail_type(
                "Accuracy", 'eval_type must be "classification" or "multilabel"', eval_type,
                'eval_type="classification"',
            )
        self._type = eval_type
        self.clear()

    def clear(self) -> None:
        """Forget what was gathered."""
        self._correct_num = 0
        self._total_num = 0
        self._class_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take in one batch.

        Args:
            inputs: Predictions and labels: tensors, arrays or lists.

        Raises:
            ValueError: There are not two inputs, their shapes do not fit, or the number of classes changed.
        """
        predictions, labels = self._pair(inputs)
        if self._type == "classification":
            correct = self._classified(predictions, labels)
        else:
            correct = self._all_labels_right(predictions, labels)
        self._correct_num += int(correct.sum())
        self._total_num += correct.size

    def eval(self) -> float:
        """Return the share of right rows.

        Raises:
            RuntimeError: There was no batch.
        """
        return self._mean(self._correct_num, self._total_num)

    def _classified(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        self._check_classes(predictions)
        if labels.shape == predictions.shape and is_one_hot(labels):
            labels = labels.argmax(axis=1)
        elif predictions.ndim == 2 and labels.shape == (len(predictions), 1):
            labels = labels[:, 0]
        wanted = (*predictions.shape[:1], *predictions.shape[2:])
        if labels.shape != wanted:
            raise checks.fail_value(
                "Accuracy.update",
                f"labels for predictions {predictions.shape} must be class numbers {wanted} or one-hot",
                f"shape {labels.shape}",
                "class numbers as labels, or keras.metrics.CategoricalAccuracy() for soft ones",
            )
        return predictions.argmax(axis=1) == labels

    def _all_labels_right(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        if predictions.shape != labels.shape:
            raise checks.fail_value(
                "Accuracy.update", f"labels must have the predictions' shape {predictions.shape}", labels.shape,
                'eval_type="classification" for class numbers',
            )
        for name, values in (("predictions", predictions), ("labels", labels)):
            if not np.all((values == 0) | (values == 1)):
                raise checks.fail_value(
                    "Accuracy.update", f"{name} must be 0 or 1 with multilabel", values.flat[0],
                    "(predictions > 0.5).astype(int)",
                )
        self._check_classes(predictions, at_least=1)
        return (predictions == labels).all(axis=1)

    def _check_classes(self, predictions: np.ndarray, at_least: int = 2) -> None:
        classes = predictions.shape[1] if predictions.ndim > 1 else 0
        if classes < at_least:
            raise checks.fail_value(
                "Accuracy.update", f"predictions must have shape (N, C, ...) with C at least {at_least}",
                predictions.shape, "metrics={'accuracy': keras.metrics.BinaryAccuracy()} for one output a row",
            )
        if self._class_num not in (0, classes):
            raise checks.fail_value(
                "Accuracy.update", f"predictions had {self._class_num} classes so far", f"{classes} classes",
                "clear() before other predictions",
            )
        self._class_num = classes
