"""`ParameterUpdate`: a cell that assigns its input to a Parameter."""

from __future__ import annotations

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter
from mixtrain.ops import assign
from mixtrain.typing import Tensor


class ParameterUpdate(Cell):
    """Assign the input to the Parameter `param`, and return the input.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> weight = mixtrain.Parameter([0.0, 0.0])
        >>> done = nn.ParameterUpdate(weight)(mixtrain.Tensor([1.0, 2.0]))
        >>> weight.asnumpy().tolist()
        [1.0, 2.0]
    """

    def __init__(self, param: Parameter) -> None:
        super().__init__(auto_prefix=False)
        checks.instance(self.cls_name, "param", param, Parameter, "param=net.trainable_params()[0]")
        # Bypass Cell's registration: the Parameter belongs to another network.
        object.__setattr__(self, "_param", param)

    def construct(self, x: Tensor) -> Tensor:
        """Assign `x` to the Parameter, and return `x`."""
        assign(self._param, x)
        return x
