"""`Loss`: the mean of the batches' losses."""

from __future__ import annotations

from typing import Any

from mixtrain import checks
from mixtrain.nn.metrics.metric import Metric, rearrange_inputs


class Loss(Metric):
    """The mean of the losses of batches, each batch counting the same.

    Example:
        >>> metric = Loss()
        >>> metric.update(0.25)
        >>> metric.update([0.5, 1.0])
        >>> metric.eval()
        0.5

    Source: MindSpore, `mindspore.train.Loss`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        """Forget what was gathered."""
        self._sum_loss = 0.0
        self._total_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take in the loss of one batch.

        Args:
            inputs: One: the loss, a scalar or of shape (N,).

        Raises:
            ValueError: There is not one input, or it has two axes or more.
        """
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
        """Return the mean loss.

        Raises:
            RuntimeError: There was no batch.
        """
        return self._mean(self._sum_loss, self._total_num)
