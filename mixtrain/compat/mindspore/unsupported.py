"""MindSpore cells that are not available here, each with an error that says what to use instead."""

from __future__ import annotations

from typing import Any, ClassVar

from mixtrain.cell.cell import Cell


class _Unsupported(Cell):
    """A cell that cannot be created."""

    _reason: ClassVar[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}: {self._reason}")


class GraphCell(_Unsupported):
    """Refused: MindSpore's compiled graphs (MINDIR) cannot be run. Example: write a Cell, then `load_checkpoint`."""

    _reason = (
        "a MINDIR graph holds MindSpore's own operations, which cannot be run here. Write the network as a Cell and "
        "load its parameters with mixtrain.load_checkpoint and mixtrain.load_param_into_net."
    )
