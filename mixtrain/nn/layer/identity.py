"""`Identity`: a cell that returns its input."""

from __future__ import annotations

from typing import Any

from mixtrain.cell.cell import Cell


class Identity(Cell):
    """Return the input. Example: ``nn.Identity()(x)``. Source: MindSpore, `mindspore.nn.Identity`."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Any) -> Any:
        """Return `x`."""
        return x
