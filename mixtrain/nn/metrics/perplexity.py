"""`Perplexity`: the exponential of the mean negative log-likelihood."""

from __future__ import annotations

import math

import numpy as np

from mixtrain import checks
from mixtrain.metrics.metric import SparseLabels, rearrange_inputs
from mixtrain.nn.metrics.host_metric import HostMetric
from mixtrain.typing import TensorLike


class Perplexity(HostMetric):
    """The exponential of the mean negative log-likelihood of labels.

    Args: ignore_label: Label whose rows are ignored; None for none.

    Example:
        >>> round(Perplexity()([[0.25, 0.75], [0.5, 0.5]], [0, 1]), 4)
        2.8284
    """

    def __init__(self, ignore_label: int | None = None) -> None:
        super().__init__()
        if ignore_label is not None and (isinstance(ignore_label, bool) or not isinstance(ignore_label, int)):
            raise checks.fail_type("Perplexity", "ignore_label must be an int", ignore_label, "ignore_label=0")
        self.ignore_label = ignore_label
        self.clear()

    def clear(self) -> None:
        self._sum_metric = 0.0
        self._num_inst = 0

    @rearrange_inputs
    def update(self, *inputs: TensorLike) -> None:
        """Update the metric with one batch. `inputs`: probabilities (..., C), and one class index per row."""
        predictions, labels = self._pair(inputs)
        if predictions.ndim < 2 or labels.size != predictions.size // predictions.shape[-1]:
            raise checks.fail_value(
                "Perplexity.update", f"there must be one label for each row of predictions {predictions.shape}",
                labels.shape, "probabilities (N, C) and class numbers (N,)",
            )
        labels = labels.reshape(-1).astype(int)
        rows = predictions.reshape(labels.size, -1)
        valid = np.ones(labels.size, bool) if self.ignore_label is None else labels != self.ignore_label
        outside = labels[valid & ((labels < 0) | (labels >= rows.shape[-1]))]
        if outside.size:
            raise checks.fail_value(
                "Perplexity.update", f"labels must be class numbers from 0 to {rows.shape[-1] - 1}", int(outside[0]),
                f"Perplexity(ignore_label={outside[0]})",
            )
        probabilities = rows[np.arange(labels.size)[valid], labels[valid]]
        self._sum_metric -= float(np.log(np.maximum(1e-10, probabilities)).sum())
        self._num_inst += int(valid.sum())

    def _sparse_labels(self, *inputs: TensorLike) -> SparseLabels | None:
        predictions, labels = inputs
        ignored = () if self.ignore_label is None else (self.ignore_label,)
        return SparseLabels(labels, predictions.shape[-1], ignored)

    def eval(self) -> float:
        """Compute the perplexity."""
        return math.exp(self._mean(self._sum_metric, self._num_inst))
