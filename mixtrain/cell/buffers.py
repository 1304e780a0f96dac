"""A Cell's buffers: Tensors that belong to its state and are not trained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mixtrain import checks
from mixtrain.cell.tree import CellTree
from mixtrain.common.tensor import Tensor


class CellBuffers(CellTree):
    """The part of a Cell that knows which of its Tensor attributes are buffers."""

    def __init__(self) -> None:
        super().__init__()
        # Whether `state_dict` contains the buffer, by attribute name; the Tensor itself is the attribute.
        self._buffers: dict[str, bool] = {}

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a Tensor as an attribute that is part of the cell's state and not trained.

        Args:
            name: The attribute's name.
            tensor: The Tensor, or None for a buffer without a value yet.
            persistent: Whether `state_dict` contains it.

        Raises:
            TypeError: `name` is not a str, or `tensor` is neither a Tensor nor None.
            KeyError: The name is empty, contains a dot, or is taken.
        """
        where = f"{type(self).__name__}.register_buffer"
        if name not in self._buffers:
            self._check_new_name(where, name, True)
            if name in self._params or name in self._cells:
                raise KeyError(f"{where}: the name must be free; got {name!r}, a Parameter or a Cell.")
        if tensor is not None:
            checks.instance(where, "tensor", tensor, Tensor, "a Tensor or None")
        self._buffers[name] = checks.boolean(where, "persistent", persistent)
        object.__setattr__(self, name, tensor)

    def own_buffers(self, persistent_only: bool = False) -> dict[str, Any]:
        """Return this cell's own buffers by attribute name, without those of children."""
        return {
            name: getattr(self, name) for name, persistent in self._buffers.items()
            if getattr(self, name, None) is not None and (persistent or not persistent_only)
        }

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield (path, buffer), own buffers first, then those of children; each once if `remove_duplicate`."""
        seen: set[int] = set()
        for path, cell in self.cells_and_names(name_prefix=prefix) if recurse else [(prefix, self)]:
            for name, buffer in cell.own_buffers().items():
                if not (remove_duplicate and id(buffer) in seen):
                    seen.add(id(buffer))
                    yield (f"{path}.{name}" if path else name), buffer

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Yield the buffers, those of children too unless `recurse` is False."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_buffer(self, target: str) -> Any:
        """Return the buffer at a path ("block.mean").

        Raises:
            AttributeError: There is none.
        """
        path, _, name = target.rpartition(".")
        cell = self.get_sub_cell(path)
        if name not in cell._buffers:
            where = f"{type(self).__name__}.get_buffer"
            raise AttributeError(f"{where}: {checks.short_repr(target)} is not the path of a buffer.")
        return getattr(cell, name)

    def get_sub_cell(self, target: str) -> Any:
        """Return the cell at a path ("block.conv1"); "" is this cell.

        Raises:
            AttributeError: There is none.
        """
        cell: Any = self
        for name in filter(None, target.split(".")):
            cell = getattr(cell, name)
            if not isinstance(cell, CellTree):
                where = f"{type(self).__name__}.get_sub_cell"
                raise AttributeError(f"{where}: {checks.short_repr(target)} is not the path of a cell.")
        return cell
