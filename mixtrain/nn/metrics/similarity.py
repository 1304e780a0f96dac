"""`CosineSimilarity` and `Dice`: similarity of vectors and masks."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mixtrain import checks
from mixtrain.metrics.metric import rearrange_inputs
from mixtrain.nn.metrics.host_metric import HostMetric
from mixtrain.typing import TensorLike


class CosineSimilarity(HostMetric):
    """The pairwise similarity of the rows of the last input.

    Args:
        similarity: "cosine" or "dot" (dot products).
        reduction: "none" for the matrix (N, N), "sum" or "mean" over its rows.
        zero_diagonal: Whether to set the similarity of a row to itself to 0.

    Example:
        >>> CosineSimilarity(similarity="dot")([[1.0, 2.0], [3.0, 0.0]]).tolist()
        [[0.0, 3.0], [3.0, 0.0]]
    """

    def __init__(
        self, similarity: Literal["cosine", "dot"] = "cosine", reduction: Literal["none", "sum", "mean"] = "none",
        zero_diagonal: bool = True,
    ) -> None:
        super().__init__()
        self.similarity = checks.one_of("CosineSimilarity", "similarity", similarity, ("cosine", "dot"))
        self.reduction = checks.one_of("CosineSimilarity", "reduction", reduction, ("none", "sum", "mean"))
        self.zero_diagonal = checks.boolean("CosineSimilarity", "zero_diagonal", zero_diagonal)
        self.clear()

    def clear(self) -> None:
        self._matrix: np.ndarray | None = None

    @rearrange_inputs
    def update(self, inputs: TensorLike) -> None:
        """Set the vectors, replacing those of an earlier call. `inputs`: array of shape (N, D)."""
        rows = self._convert_data(inputs)
        if self.similarity == "cosine":
            rows = rows / np.linalg.norm(rows, ord=2, axis=1, keepdims=True)
        self._matrix = rows @ rows.T

    def eval(self) -> np.ndarray:
        """Compute the matrix (N, N), or the sums or means of its rows (N,)."""
        self._check_updated(self._matrix is not None)
        matrix = np.array(self._matrix)
        if self.zero_diagonal:
            np.fill_diagonal(matrix, 0)
        if self.reduction == "none":
            return matrix
        return matrix.mean(axis=-1) if self.reduction == "mean" else matrix.sum(axis=-1)


class Dice(HostMetric):
    """The Dice coefficient ``2 * sum(p * y) / (sum(p * p) + sum(y * y) + smooth)`` of each batch.

    As in MindSpore, the sum over batches is divided by the number of rows; with batches of one row it is the mean.

    Args: smooth: Added to the denominator, above 0.

    Example:
        >>> round(Dice()([[0.0, 1.0, 1.0]], [[0.0, 1.0, 0.0]]), 4)
        0.6667
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        self.smooth = checks.number("Dice", "smooth", smooth, above=0.0, example=1e-5)
        self.clear()

    def clear(self) -> None:
        self._dice_coeff_sum = 0.0
        self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs: TensorLike) -> None:
        """Update the metric with one batch. `inputs`: predictions and labels of one shape (N, ...)."""
        predictions, labels = self._pair(inputs)
        if predictions.shape != labels.shape or labels.ndim == 0:
            raise checks.fail_value(
                "Dice.update", f"labels must have the predictions' shape {predictions.shape}", labels.shape,
                "masks (N, ...) of one shape",
            )
        intersection = float((predictions * labels).sum())
        union = float((predictions * predictions).sum() + (labels * labels).sum())
        self._dice_coeff_sum += 2.0 * intersection / (union + self.smooth)
        self._samples_num += len(labels)

    def eval(self) -> float:
        """Compute the coefficient."""
        return self._mean(self._dice_coeff_sum, self._samples_num)
