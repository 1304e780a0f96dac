"""`SequentialCell`, `CellList` and `CellDict`: containers of cells."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import keras

from mixtrain import boundary, checks
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor as MindSporeTensor
from mixtrain.nn.layer.windows import is_integral
from mixtrain.ops.control import chosen
from mixtrain.trace_version import layer_changed
from mixtrain.typing import Layer, Tensor

_CellsT = TypeVar("_CellsT", bound="_Cells")


def _prefix_of_names(cells: Mapping[str, Cell]) -> str:
    """Return what the names of parameters start with before the names of their cells, as MindSpore finds it.

    An empty container has no prefix, even as an attribute of a cell, so that names of what is appended start with "0".
    """
    named: list[tuple[str, list[str]]] = []
    for name, cell in cells.items():
        parameter = next((each for each in cell.get_parameters() if isinstance(each, Parameter)), None)
        if parameter is not None and len(named) < 2:
            named.append((name, parameter.name.split(".")))
    (first, parts), (second, others) = [*named, ("", []), ("", [])][:2]
    prefix = ""
    for index, part in enumerate(parts):
        if part == first:
            prefix = "".join(f"{part}." for part in parts[:index])
            if second and others[index : index + 1] == [second]:
                break
    return prefix


class _Cells(Cell):
    """A list of cells registered under their indices, so parameters are named ``0.weight``, ``1.weight``, ..."""

    def _as_cell(self, value: Any) -> Cell:
        if isinstance(value, keras.Layer):
            value = type(self).wrap_keras_layer(value)
        write = f"{self.cls_name}([nn.Dense(4, 2), nn.ReLU()])"
        return checks.instance(self.cls_name, "each item", value, Cell, write)

    def _position(self, index: int) -> int:
        """Check an index and convert it to a non-negative one; in a graph a tensor's value decides."""
        if isinstance(index, MindSporeTensor) and boundary.in_graph():
            position = chosen(index, len(self))
            if position is not None:
                return position
        elif not is_integral(index):
            raise checks.fail_type(self.cls_name, "an index must be an int or a slice", index, "cells[0]")
        elif -len(self) <= index < len(self):
            return int(index) % len(self)
        raise IndexError(
            f"{self.cls_name}: expected an index from {-len(self)} to {len(self) - 1}; got {checks.short_repr(index)}. "
            "Write cells[-1] for the last cell."
        )

    def _replace(self, named_cells: Iterable[tuple[str, Any]]) -> None:
        """Replace all cells by (name, cell) pairs, and rename their parameters accordingly."""
        pairs, prefix = list(named_cells), self._siblings_prefix()
        self._cells.clear()
        layer_changed(self)
        for name, cell in pairs:
            self._add_cell(name, cell, prefix)

    def _siblings_prefix(self) -> str:
        return _prefix_of_names(self._cells)

    def _renumber(self, cells: Iterable[Cell]) -> None:
        self._replace((str(index), cell) for index, cell in enumerate(cells))

    def __len__(self) -> int:
        return len(self._cells)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[Cell]:
        return iter(list(self._cells.values()))

    def __getitem__(self: _CellsT, index: Any) -> Any:
        if not isinstance(index, slice):
            return list(self)[self._position(index)]
        subset = type(self)()
        # The cells remain in this container, so their parameters keep their names.
        object.__setattr__(subset, "_auto_prefix", False)
        for name, cell in itertools.islice(self._cells.items(), *index.indices(len(self))):
            subset._add_cell(name, cell)
        object.__setattr__(subset, "training", self.training)
        return subset

    def __setitem__(self, index: int, value: Layer) -> None:
        name = list(self._cells)[self._position(index)]
        self._add_cell(name, self._as_cell(value))

    def __delitem__(self, index: int | slice) -> None:
        cells = list(self)
        if not isinstance(index, slice):
            index = self._position(index)
        del cells[index]
        self._renumber(cells)

    def append(self: _CellsT, cell: Layer) -> _CellsT:
        """Append a cell, and return the container."""
        self._add_cell(str(len(self)), self._as_cell(cell))
        return self

    def set_grad(self: _CellsT, requires_grad: bool = True) -> _CellsT:
        """Call `Cell.set_grad` on the container and on each cell, and return the container."""
        super().set_grad(requires_grad)
        for cell in self:
            cell.set_grad(requires_grad)
        return self


class SequentialCell(_Cells):
    """Apply cells in sequence.

    Args: *args: Cells or Keras layers, one list of them, or one mapping from attribute names to them.
    Inputs: x, the input of the first cell.
    Returns: The output of the last cell; `x` if the container is empty.

    Example:
        >>> import mixtrain.nn as nn
        >>> net = nn.SequentialCell([nn.Dense(4, 2), nn.ReLU()])
        >>> [parameter.name for parameter in net.trainable_params()]
        ['0.weight', '0.bias']
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            self._replace((name, self._as_cell(cell)) for name, cell in args[0].items())
        else:
            items = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
            self._renumber([self._as_cell(cell) for cell in items])

    @property
    def cell_list(self) -> list[Cell]:
        """The cells in order; assigning a list of the same length replaces them."""
        return list(self)

    @cell_list.setter
    def cell_list(self, cells: Sequence[Layer]) -> None:
        if len(cells) != len(self):
            raise checks.fail_value("SequentialCell.cell_list", f"there must be {len(self)} cells", len(cells),
                                    "as many cells as before")
        for name, cell in zip(list(self._cells), cells, strict=True):
            if self._cells[name] is not cell:
                self._add_cell(name, self._as_cell(cell))
        layer_changed(self)  # Also for scripts that have modified `_cells` directly.

    def construct(self, x: Tensor) -> Tensor:
        """Apply the cells in sequence."""
        for cell in self:
            x = cell(x)
        return x


class CellList(_Cells):
    """A list of cells whose parameters are registered; the caller calls the cells.

    Args:
        *args: At most one list or tuple of Cells or Keras layers.
        auto_prefix: Whether parameter names are prefixed with the index of the cell.

    Example:
        >>> import mixtrain.nn as nn
        >>> blocks = nn.CellList([nn.Dense(4, 4) for _ in range(3)])
        >>> len(blocks), blocks[-1].weight.name
        (3, '2.weight')
    """

    def __init__(self, *args: Any, auto_prefix: bool = True) -> None:
        super().__init__(auto_prefix=auto_prefix)
        if len(args) > 1 or (args and not isinstance(args[0], (list, tuple))):
            raise checks.fail_type("CellList", "the cells must be in one list", args[0], "CellList([first, second])")
        self.extend(args[0] if args else [])

    def insert(self, index: int, cell: Layer) -> None:
        """Insert a cell before position `index`; the cells after it are renumbered."""
        if index != len(self):
            index = self._position(index)
        cells = list(self)
        cells.insert(index, self._as_cell(cell))
        self._renumber(cells)

    def extend(self, cells: Iterable[Layer]) -> CellList:
        """Append all cells of a list, and return this container."""
        checks.instance("CellList.extend", "cells", cells, (list, tuple, CellList), "extend([first, second])")
        for cell in list(cells):
            self.append(cell)
        return self

    def __iadd__(self, cells: Iterable[Layer]) -> CellList:
        return self.extend(cells)

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Raise NotImplementedError: a list of cells has no forward pass.

        Raises: NotImplementedError: Always.
        """
        raise NotImplementedError("CellList: a list of cells cannot be called. Write for cell in cells: x = cell(x).")


class CellDict(Cell):
    """An ordered dict of cells. Example: ``nn.CellDict({"conv": nn.Conv2d(1, 2, 3)})["conv"](x)``.

    Args: args: A mapping, or pairs of a name and a Cell.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self._names: list[str] = []
        self.update(dict(*args, **kwargs))

    def update(self, cells: Any) -> None:
        """Add or replace cells from a mapping or pairs."""
        for name, cell in dict(cells).items():
            self[name] = cell

    def _siblings_prefix(self) -> str:
        return _prefix_of_names(self._cells)

    def __setitem__(self, name: str, cell: Cell) -> None:
        if not isinstance(name, str):
            raise checks.fail_type("CellDict", "a key must be a str", name, 'cells["conv"]')
        if name not in self._names and (not name or "." in name or hasattr(self, name)):
            raise KeyError(
                f"CellDict: a key must be a name without dots that is no attribute of a Cell; got {name!r}. "
                f"Write another name."
            )
        if not isinstance(cell, (Cell, keras.Layer)) or isinstance(cell, (CellDict, CellList, SequentialCell)):
            raise checks.fail_type("CellDict", "a value must be one Cell, not a container", cell, "nn.Dense(4, 2)")
        setattr(self, name, cell)
        if name not in self._names:
            self._names.append(name)

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return getattr(self, name)

    def __delitem__(self, name: str) -> None:
        if name not in self._names:
            raise KeyError(name)
        self._names.remove(name)
        delattr(self, name)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Any:
        return iter(self._names)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def keys(self) -> Any:
        """Return the names."""
        return OrderedDict.fromkeys(self._names).keys()

    def values(self) -> list[Cell]:
        """Return the Cells."""
        return [getattr(self, name) for name in self._names]

    def items(self) -> list[tuple[str, Cell]]:
        """Return pairs of a name and a Cell."""
        return list(zip(self._names, self.values(), strict=True))

    def clear(self) -> None:
        """Remove all cells."""
        for name in list(self._names):
            del self[name]

    def pop(self, key: str) -> Cell:
        """Remove the Cell named `key` and return it."""
        cell = self[key]
        del self[key]
        return cell
