"""`Loss`: the mean loss over batches."""

from __future__ import annotations

from mixtrain import checks
from mixtrain.metrics.metric import rearrange_inputs
from mixtrain.nn.metrics.host_metric import HostMetric
from mixtrain.typing import TensorLike


class Loss(HostMetric):
    """The mean loss over batches, each with the same weight.

    Example:
        >>> metric = Loss()
        >>> metric.update(0.25)
        >>> metric.update([0.5, 1.0])
        >>> metric.eval()
        0.5
    """

    _takes_loss = True

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum_loss = 0.0
        self._total_num = 0

    @rearrange_inputs
    def update(self, *inputs: TensorLike) -> None:
        """Update the metric with the loss of one batch. `inputs`: the loss, a scalar or of shape (N,)."""
        if len(inputs) != 1:
            raise checks.fail_value(
                "Loss.update", "it takes 1 input, the loss", f"{len(inputs)} inputs", "update(loss)"
            )
        loss = self._convert_data(inputs[0])
        if loss.ndim > 1:
            raise checks.fail_value(
                "Loss.update", "the loss must be a scalar or of shape (N,)", loss.shape, 'reduction="mean" in the loss'
            )
        self._sum_loss += float(loss.mean())
        self._total_num += 1

    def eval(self) -> float:
        """Compute the mean loss."""
        return self._mean(self._sum_loss, self._total_num)
