"""`Accuracy`: the fraction of correct predictions."""

from __future__ import annotations

import numpy as np

from mixtrain.metrics.metric import SparseLabels, class_indices, rearrange_inputs
from mixtrain.nn.metrics.evaluation_base import EvalType, EvaluationBase
from mixtrain.typing import TensorLike


class Accuracy(EvaluationBase):
    """The fraction of correct predictions.

    Args: eval_type: "classification": predictions (N, C, ...), whose argmax along axis 1 is the class; labels are class
        numbers (N, ...) or (N, 1), or one-hot of the predictions' shape. "multilabel": predictions and labels of one
        shape (N, C, ...), all 0 or 1; a row is correct if all its labels are.

    Example:
        >>> metric = Accuracy()
        >>> metric([[0.2, 0.8], [0.9, 0.1]], [1, 1])
        0.5
    """

    def __init__(self, eval_type: EvalType = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        self._correct_num = 0
        self._total_num = 0
        self._class_num = 0

    @rearrange_inputs
    def update(self, *inputs: TensorLike) -> None:
        """Update the metric with one batch. `inputs`: predictions and labels: tensors, arrays or lists."""
        predictions, labels = self._pair(inputs)
        correct: np.ndarray
        if self._type == "classification":
            correct = self._class_numbers(predictions, labels) == predictions.argmax(axis=1)
        else:
            self._check_multilabel(predictions, labels)
            correct = (predictions == labels).all(axis=1)
        self._correct_num += int(correct.sum())
        self._total_num += correct.size

    def _sparse_labels(self, *inputs: TensorLike) -> SparseLabels | None:
        return class_indices(*inputs) if self._type == "classification" else None

    def eval(self) -> float:
        """Compute the fraction of correct predictions."""
        return self._mean(self._correct_num, self._total_num)
