"""`Precision`, `Recall`, `Fbeta` and `F1`: metrics from counts of true positives, predictions and labels."""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

from mixtrain import checks
from mixtrain.metrics.metric import rearrange_inputs
from mixtrain.nn.metrics.evaluation_base import EvalType, EvaluationBase
from mixtrain.typing import TensorLike

# Added to a denominator, it turns 0 / 0 into 0 and changes no other ratio.
_TINY: Final = sys.float_info.min


class _ClassCounts(EvaluationBase):
    """Base class: counts of predictions, labels and true positives, per class or with "multilabel" per row."""

    def __init__(self, eval_type: EvalType = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        self._class_num = 0
        self._batches: list[np.ndarray] = []

    @rearrange_inputs
    def update(self, *inputs: TensorLike) -> None:
        """Update the metric with one batch. `inputs`: predictions and labels: tensors, arrays or lists."""
        predictions, labels = self._pair(inputs)
        if self._type == "classification":
            labels = self._class_numbers(predictions, labels)
            predicted, actual = self._one_hot(predictions.argmax(axis=1)), self._one_hot(labels)
        else:
            self._check_multilabel(predictions, labels)
            predicted, actual = (
                np.swapaxes(values, 0, 1).reshape(self._class_num, -1) for values in (predictions, labels)
            )
        counts = np.stack([(predicted * actual).sum(axis=0), predicted.sum(axis=0), actual.sum(axis=0)]).astype(float)
        # Counts per class are summed over batches; counts per row are concatenated.
        if self._type == "classification" and self._batches:
            self._batches[0] = self._batches[0] + counts
        else:
            self._batches.append(counts)

    def eval(self, average: bool = False) -> Any:
        """Compute the ratio of each class (of each row with "multilabel"), or their mean.

        Args: average: Whether to return the mean.
        """
        checks.boolean(f"{type(self).__name__}.eval", "average", average)
        self._check_updated(len(self._batches))
        ratios = self._ratio(*np.concatenate(self._batches, axis=1))
        return float(ratios.mean()) if average else ratios

    def _one_hot(self, indices: np.ndarray) -> np.ndarray:
        indices = indices.reshape(-1).astype(int)
        if indices.size and not 0 <= indices.min() <= indices.max() < self._class_num:
            raise checks.fail_value(
                self._where, f"labels must be classes 0 to {self._class_num - 1}",
                int(indices.max() if indices.min() >= 0 else indices.min()), "predictions with that many classes",
            )
        return np.eye(self._class_num)[indices]

    def _ratio(self, matches: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class Precision(_ClassCounts):
    """The fraction of the predictions of a class that are correct; an array with one value per class.

    Args: eval_type: "classification" or "multilabel", as in `Accuracy`; with "multilabel" there is one value per row.

    Example:
        >>> Precision()([[0.2, 0.8], [0.9, 0.1], [0.3, 0.7]], [1, 0, 0]).tolist()
        [1.0, 0.5]
    """

    def _ratio(self, matches: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
        return matches / (predicted + _TINY)


class Recall(_ClassCounts):
    """The fraction of the labels of a class that were predicted; an array with one value per class.

    Args: eval_type: "classification" or "multilabel", as in `Accuracy`; with "multilabel" there is one value per row.

    Example:
        >>> Recall()([[0.2, 0.8], [0.9, 0.1], [0.3, 0.7]], [1, 0, 0]).tolist()
        [0.5, 1.0]
    """

    def _ratio(self, matches: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
        return matches / (actual + _TINY)


class Fbeta(_ClassCounts):
    """The F-beta score, ``(1 + b²) * matches / (b² * actual + predicted)`` for each class.

    Args: beta: Weight of recall relative to precision, above 0.

    Example:
        >>> Fbeta(1.0)([[0.2, 0.8], [0.9, 0.1]], [1, 1]).round(4).tolist()
        [0.0, 0.6667]
    """

    def __init__(self, beta: float) -> None:
        super().__init__()
        self.beta = checks.number(type(self).__name__, "beta", beta, above=0.0, example=1.0)

    def _ratio(self, matches: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
        square = self.beta**2
        return (1.0 + square) * matches / (square * actual + predicted + _TINY)


class F1(Fbeta):
    """`Fbeta` with beta 1. Example: ``F1()(predictions, labels)``."""

    def __init__(self) -> None:
        super().__init__(1.0)
