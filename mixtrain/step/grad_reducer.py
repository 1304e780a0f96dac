"""`DistributedGradReducer`: the sum or mean of gradients over devices, which of one device is what it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.communication import GlobalComm


class DistributedGradReducer(Cell):
    """Reduce gradients over the devices that train together; one device keeps its own.

    Args:
        parameters: What is trained.
        mean: Whether to take the mean over devices; otherwise the sum.
        degree: How many devices there are, 1.
        fusion_type: How MindSpore fuses the reductions; without effect.
        group: Name of the group of devices.

    Raises:
        ValueError: `degree` is not 1.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(1, 1)
        >>> reducer = DistributedGradReducer(net.trainable_params(), mean=True, degree=1)
        >>> [float(gradient) for gradient in reducer((mixtrain.Tensor(2.0), mixtrain.Tensor(3.0)))]
        [2.0, 3.0]

    Source: MindSpore, `mindspore.nn.DistributedGradReducer`.
    """

    def __init__(
        self,
        parameters: Sequence[Any],
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(auto_prefix=False)
        if degree is not None and checks.integer(self.cls_name, "degree", degree, at_least=1) != 1:
            raise checks.fail_value(self.cls_name, "degree must be 1: training runs on one device", degree, "degree=1")
        self.mean = mean
        self.degree = 1

    def construct(self, grads: Any) -> Any:
        """Return the gradients of all devices: `grads`."""
        return grads
