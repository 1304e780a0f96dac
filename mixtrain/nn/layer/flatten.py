"""`Flatten`: merging of axes."""

from __future__ import annotations

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.ops.array import flatten
from mixtrain.typing import Tensor


class Flatten(Cell):
    """Merge the axes from `start_dim` to `end_dim` into one.

    Inputs: x, of any dtype.
    Returns: The same elements in the same (channels-first) order; other axes are unchanged.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.Flatten()(mixtrain.Tensor(np.ones((2, 3, 4, 5)))).shape)
        (2, 60)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = int(start_dim), int(end_dim)

    def construct(self, x: Tensor) -> Tensor:
        """Flatten `x`."""
        x = backend.to_tensor(x)
        start, end = (self._axis(x, name) for name in ("start_dim", "end_dim"))
        if start > end:
            raise checks.fail_value(
                name_of(self), "start_dim must not come after end_dim", (self.start_dim, self.end_dim), "start_dim=1"
            )
        return flatten(x, start_dim=start, end_dim=end)

    def _axis(self, x: Tensor, name: str) -> int:
        """Check the axis of an argument against the input, and return it as a non-negative int."""
        axis, rank = getattr(self, name), len(x.shape)
        if not -rank <= axis < rank:
            raise ValueError(
                f"{name_of(self)}: expected {name} to be an axis of the input; got {axis} with input shape "
                f"{tuple(x.shape)}. Write an input of at least 2 axes, (N, ...), or another {name}."
            )
        return int(axis % rank)
