"""Containers number their cells, name their parameters, and behave as lists."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend, nn
from mixtrain.cell.cell import Cell
from mixtrain.common.tensor import Tensor
from mixtrain.nn.layer import CellList, Dense, Flatten, ReLU, SequentialCell


def names(cell: Cell) -> list[str]:
    return [parameter.name for parameter in cell.get_parameters()]


class Holder(Cell):
    def __init__(self, cells: Any) -> None:
        super().__init__()
        self.held = cells


def dense() -> Dense:
    return Dense(2, 2, "ones", has_bias=False)


@pytest.mark.parametrize("make", [lambda a, b: SequentialCell(a, b), lambda a, b: SequentialCell([a, b])])
def test_cells_are_called_in_order(make: Any) -> None:
    net = make(dense(), dense())
    assert names(net) == ["0.weight", "1.weight"]
    assert backend.to_numpy(net(Tensor([[1.0, 2.0]]))).tolist() == [[6.0, 6.0]]


def test_empty_container_returns_its_input_and_is_false() -> None:
    x = Tensor([1.0])
    assert SequentialCell()(x) is x
    assert not SequentialCell()
    assert SequentialCell(ReLU())


def test_mapping_gives_attribute_names() -> None:
    net = SequentialCell(OrderedDict(a=dense(), b=ReLU()))
    assert names(net) == ["a.weight"]
    assert isinstance(net.b, ReLU)


def test_names_start_with_the_holders_attribute() -> None:
    net = Holder(SequentialCell(dense()))
    net.held.append(dense())
    assert names(net) == ["held.0.weight", "held.1.weight"]


def test_indexing_slicing_and_iterating_are_a_lists() -> None:
    cells = [dense(), ReLU(), Flatten()]
    net = SequentialCell(cells)
    assert len(net) == 3
    assert net[0] is cells[0]
    assert net[-1] is cells[2]
    assert [cell is other for cell, other in zip(net, cells, strict=True)] == [True] * 3
    assert net.cell_list == cells
    with pytest.raises(IndexError, match="expected an index from -3 to 2; got 3"):
        net[3]
    with pytest.raises(TypeError, match="an index must be an int or a slice"):
        net["0"]


def test_slice_leaves_the_parameters_names_alone() -> None:
    net = Holder(SequentialCell(dense(), ReLU(), dense())).set_train()
    part = net.held[1:]
    assert isinstance(part, SequentialCell)
    assert part.training
    assert [cell is other for cell, other in zip(part, list(net.held)[1:], strict=True)] == [True, True]
    assert names(part) == ["held.2.weight"]
    assert names(net) == ["held.0.weight", "held.2.weight"]


def test_replacing_and_deleting_rename() -> None:
    net = SequentialCell(ReLU(), dense(), dense())
    net[0] = dense()
    assert names(net) == ["0.weight", "1.weight", "2.weight"]
    del net[1]
    assert names(net) == ["0.weight", "1.weight"]
    del net[:]
    assert len(net) == 0


def test_keras_layers_are_wrapped() -> None:
    net = SequentialCell(keras.layers.Dense(3), ReLU())
    assert tuple(net(Tensor(np.ones((2, 4), np.float32))).shape) == (2, 3)
    assert len(net.trainable_params()) == 2


def test_list_inserts_extends_and_appends() -> None:
    first, second, third = dense(), dense(), dense()
    cells = CellList([first])
    assert cells.append(third) is cells
    cells.insert(1, second)
    assert [cell is other for cell, other in zip(cells, (first, second, third), strict=True)] == [True] * 3
    assert names(cells) == ["0.weight", "1.weight", "2.weight"]
    cells += [dense()]
    cells.insert(len(cells), ReLU())
    assert len(cells) == 5
    with pytest.raises(IndexError, match="expected an index"):
        cells.insert(9, ReLU())


def test_list_in_a_cell_is_found_and_trained() -> None:
    net = Holder(CellList([dense() for _ in range(2)])).set_train()
    assert names(net) == ["held.0.weight", "held.1.weight"]
    assert all(cell.training for cell in net.held)


def test_list_without_prefix_leaves_names_alone() -> None:
    assert names(CellList([dense()], auto_prefix=False)) == ["weight"]


def test_list_is_not_called() -> None:
    with pytest.raises(NotImplementedError, match="Write for cell in cells"):
        CellList([ReLU()])(Tensor([1.0]))


@pytest.mark.parametrize("make", [lambda: SequentialCell(1), lambda: SequentialCell([ReLU(), "relu"]),
                                  lambda: CellList(ReLU(), ReLU()), lambda: CellList(ReLU()),
                                  lambda: CellList([ReLU()]).extend(ReLU())])
def test_what_is_no_cell_is_refused(make: Any) -> None:
    with pytest.raises(TypeError, match="Write"):
        make()


def test_set_grad_reaches_the_cells() -> None:
    net = SequentialCell(ReLU()).set_grad()
    assert net[0].requires_grad


def test_representation_is_the_references() -> None:
    assert repr(SequentialCell(Dense(1, 2, has_bias=False), ReLU())) == (
        "SequentialCell(\n  (0): Dense(input_channels=1, output_channels=2)\n  (1): ReLU()\n)"
    )
    assert repr(SequentialCell()) == "SequentialCell()"


def test_cells_are_replaced_by_assigning_the_list() -> None:
    net = SequentialCell([dense(), dense()])
    first, second = net.cell_list
    net._cells["0"] = new = dense()  # As public projects do, which then assign the list.
    net.cell_list = list(net.cells())
    assert net[0] is new and net[1] is second and first is not new
    net.cell_list = [first, dense()]
    assert net[0] is first and names(net)[0] == "0.weight"
    with pytest.raises(ValueError, match="there must be 2 cells; got 1"):
        net.cell_list = [first]


class Appending(nn.Cell):
    """Appends to empty containers, as many public networks do."""

    def __init__(self, lists: int = 1) -> None:
        super().__init__()
        self.blocks = nn.CellList()
        self.blocks.extend([nn.Dense(2, 2, has_bias=False), nn.Dense(2, 2, has_bias=False)])
        self.tail = nn.Dense(2, 2, has_bias=False)
        self.tail.extra = nn.Dense(2, 2, has_bias=False)
        if lists == 2:
            self.more = nn.SequentialCell()
            self.more.append(nn.Dense(2, 2, has_bias=False))


def names_of(network: nn.Cell) -> list[str]:
    return [parameter.name for parameter in network.get_parameters()]


def test_names_of_parameters_that_are_appended_later_are_mindspores() -> None:
    # Printed by MindSpore 2.10: an empty container has no prefix, and neither has a cell's parent.
    assert names_of(Appending()) == ["0.weight", "1.weight", "tail.weight", "extra.weight"]

    class Nested(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first = Appending()
            self.second = nn.CellList([Appending()])
            self.second.append(nn.Dense(2, 2, has_bias=False))
            self.third = nn.CellList([nn.Dense(2, 2, has_bias=False)])
            self.third.append(nn.Dense(2, 2, has_bias=False))
            self.third.insert(0, nn.Dense(2, 2, has_bias=False))
            self.third[1] = nn.Dense(2, 2, has_bias=False)

    below = ["blocks.0.weight", "blocks.1.weight", "tail.weight", "tail.extra.weight"]
    assert names_of(Nested()) == [
        *(f"first.{name}" for name in below), *(f"second.0.{name}" for name in below), "second.0.blocks.1.weight",
        "third.0.weight", "third.1.weight", "third.2.weight",
    ]
    assert Nested().third[0].name_prefix == "third.0."


def test_parameters_of_one_name_are_named_by_their_paths_before_they_are_trained_or_stored() -> None:
    network = Appending(lists=2)
    assert names_of(network).count("0.weight") == 2
    paths = ["blocks.0.weight", "blocks.1.weight", "tail.weight", "tail.extra.weight", "more.0.weight"]
    assert [parameter.name for parameter in network.trainable_params()] == paths
    nn.Momentum(network.trainable_params(), 0.1, 0.9)
    assert mixtrain.load_param_into_net(Appending(lists=2), network.parameters_dict()) == ([], [])


@pytest.mark.parametrize("name", ["values", "keys", "construct", "training", "add_flags", "", ".conv", "a.b"])
def test_a_name_that_would_hide_an_attribute_is_refused(name: str) -> None:
    cells = nn.CellDict()
    with pytest.raises(KeyError, match="CellDict: a key must be a name without dots"):
        cells[name] = nn.ReLU()
    assert len(cells) == 0 and cells.values() == []


@pytest.mark.parametrize("value", [None, 1, nn.CellDict(), nn.CellList(), nn.SequentialCell()])
def test_a_dict_of_cells_holds_single_cells(value: Any) -> None:
    with pytest.raises(TypeError, match="CellDict: a value must be one Cell, not a container"):
        nn.CellDict()["a"] = value
    with pytest.raises(KeyError):
        del nn.CellDict()["a"]


def test_a_cell_of_a_dict_is_replaced() -> None:
    cells = nn.CellDict({"act": nn.ReLU()})
    cells["act"] = nn.Tanh()
    assert isinstance(cells["act"], nn.Tanh) and len(cells) == 1


def test_in_graph_mode_the_value_of_a_tensor_chooses_the_cell() -> None:
    class Choosing(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.choices = nn.CellList([nn.ReLU(), nn.Sigmoid(), nn.Tanh()])

        def construct(self, index: Tensor, x: Tensor) -> Any:
            return self.choices[index](x)

    x = Tensor(np.array([-1.0, 2.0], np.float32))
    with pytest.raises(TypeError, match="an index must be an int or a slice"):
        Choosing()(Tensor(0), x)
    mixtrain.set_context(mode=mixtrain.GRAPH_MODE)
    network = Choosing()
    for index, cell in ((0, nn.ReLU()), (1, nn.Sigmoid()), (-1, nn.Tanh())):
        np.testing.assert_allclose(network(Tensor(index), x).asnumpy(), cell(x).asnumpy(), rtol=1e-6)
    with pytest.raises(IndexError, match="expected an index from -3 to 2"):
        network(Tensor(3), x)
