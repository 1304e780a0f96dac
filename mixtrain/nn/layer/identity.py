"""`Identity`: a cell that returns its input."""

from __future__ import annotations

from mixtrain.cell.cell import Cell
from mixtrain.typing import Tensor


class Identity(Cell):
    """Return the input. Example: ``nn.Identity()(x)``."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Tensor) -> Tensor:
        """Return `x`."""
        return x
