"""What a Cell promises: any attribute name, every part once, names as paths, modes, promotion, life inside Keras."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Model, backend, nn
from mixtrain.common.parameter import Parameter, ParameterTuple
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16, float32
from tests.backends import quick_every

NAMES = [
    "dtype", "weights", "variables", "name", "input", "output", "path", "losses", "metrics", "trainable", "built",
    "inputs", "outputs", "compute_dtype", "supports_masking", "stateful", "add_loss", "get_weights", "count_params",
]


class Block(nn.Cell):
    """Two layers below one cell."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)

    def construct(self, x: Any) -> Any:
        return self.norm(self.conv(x))


class Net(nn.Cell):
    """A block under two names, of which parameters take the later, and a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.again = self.block
        self.scale = Parameter(np.ones(2, np.float32), name="scale")
        self.head = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU())

    def construct(self, x: Any) -> Any:
        return self.head(keras.ops.mean(self.again(self.block(x)[:, :1]), (2, 3)) * self.scale.value)


PATHS = ["", "block", "block.conv", "block.norm", "head", "head.0", "head.1"]
PARAMETERS = [
    "scale", "block.conv.weight", "block.norm.moving_mean", "block.norm.moving_variance", "block.norm.gamma",
    "block.norm.beta", "head.0.weight", "head.0.bias",
]


@quick_every(3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["value", "cell", "parameter"])
def test_any_attribute_name_may_be_used(name: str, kind: str) -> None:
    value: Any = {"value": (1, 2), "cell": nn.ReLU(), "parameter": Parameter(1.0)}[kind]

    class User(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            setattr(self, name, value)

        def construct(self, x: Any) -> Any:
            return x + 1.0

    cell = User()
    assert getattr(cell, name) is value
    assert backend.to_numpy(cell(Tensor([1.0]))).tolist() == [2.0]
    assert [p.name for p in cell.get_parameters()] == ([name] if kind == "parameter" else [])


def test_training_may_be_set_and_read_as_an_attribute() -> None:
    cell = nn.SequentialCell(nn.Dropout(p=0.5))
    cell.training = True
    assert cell.training and not cell[0].training
    assert cell.set_train().phase == "train" and cell[0].training


def test_every_cell_and_parameter_is_listed_once_by_its_path() -> None:
    net = Net()
    assert [path for path, _ in net.cells_and_names()] == PATHS
    assert [path for path, _ in net.parameters_and_names()] == PARAMETERS
    names = [path.replace("block", "again") for path in PARAMETERS]
    assert [p.name for p in net.get_parameters()] == names
    assert [p.name for p in net.get_parameters(expand=False)] == ["scale"]
    assert [p.name for p in net.untrainable_params()] == names[2:4]
    assert [p.name for p in net.trainable_params()] == names[:2] + names[4:]
    assert list(net.parameters_dict()) == names
    assert list(net.name_cells()) == ["block", "head"] and list(net.cells()) == [net.block, net.head]


def test_a_name_prefix_comes_before_every_path() -> None:
    assert [path for path, _ in nn.Dense(2, 2).parameters_and_names("net")] == ["net.weight", "net.bias"]


def test_set_train_reaches_all_below_and_apply_visits_children_first() -> None:
    net = Net().set_train()
    assert all(cell.training for _, cell in net.cells_and_names())
    assert not any(cell.training for _, cell in net.set_train(False).cells_and_names())
    seen: list[str] = []
    assert net.apply(lambda cell: seen.append(cell.cls_name)) is net
    assert seen == ["Conv2d", "BatchNorm2d", "Block", "Dense", "ReLU", "SequentialCell", "Net"]
    with pytest.raises(TypeError, match="Net.set_train: mode must be True or False"):
        net.set_train(1)


def test_flags_become_attributes_here_or_everywhere_below() -> None:
    net = Net()
    assert net.add_flags(fp16=True) is net and net.fp16 and not hasattr(net.block, "fp16")
    net.add_flags_recursive(defer_inline=True)
    assert net.block.conv.defer_inline and net.get_flags() == {"fp16": True, "defer_inline": True}


def test_parameters_and_cells_may_be_inserted_under_names_from_data() -> None:
    cell = nn.SequentialCell(nn.ReLU())
    cell.insert_param_to_cell("bias", Parameter(1.0))
    cell.insert_child_to_cell("tail", nn.Dense(1, 1))
    assert [p.name for p in cell.get_parameters()] == ["bias", "weight", "bias"]
    assert list(cell.name_cells()) == ["0", "tail"]
    for insert, name, error, message in (
        (cell.insert_param_to_cell, "a.b", KeyError, "without a dot"),
        (cell.insert_param_to_cell, "", KeyError, "not empty"),
        (cell.insert_child_to_cell, 3, TypeError, "the name must be a str"),
    ):
        with pytest.raises(error, match=message):
            insert(name, Parameter(1.0))
    with pytest.raises(TypeError, match="param must be a Parameter"):
        cell.insert_param_to_cell("scale", 1.0)
    with pytest.raises(TypeError, match="child_cell must be a CellTree"):
        cell.insert_child_to_cell("more", 1.0)


def test_a_tuple_of_parameters_belongs_to_the_cell() -> None:
    class Pair(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.both = ParameterTuple([Parameter(1.0, name="a"), Parameter(2.0, name="b")])

    class Holder(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.pair = Pair()

    assert [p.name for p in Holder().trainable_params()] == ["pair.a", "pair.b"]


def test_a_tuple_holds_all_variables_of_keras_layers_whatever_their_names() -> None:
    network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2), keras.layers.Dense(1)])
    cell = nn.Cell()
    cell.weights = ParameterTuple(network.trainable_variables)
    assert [weight.name for weight in cell.trainable_params()] == ["kernel", "bias", "kernel", "bias"]
    cell.slots = cell.weights.clone("slots", "zeros")
    assert len({slot.name for slot in cell.slots}) == 4 and len(cell.trainable_params()) == 8


def test_parameters_of_a_tuple_without_names_are_numbered_in_their_cell_as_mindspore_s_checkpoints_have_them() -> None:
    class Tuples(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first = ParameterTuple([Parameter(1.0), Parameter(2.0, name="named")])
            self.second = ParameterTuple([Parameter(3.0)])

    network = nn.SequentialCell(Tuples(), Tuples())
    names = ["0.Parameter$1", "0.named", "0.Parameter$2", "1.Parameter$1", "1.named", "1.Parameter$2"]
    assert [parameter.name for parameter in network.get_parameters()] == names


@pytest.mark.parametrize("half", [float16, bfloat16])
def test_half_meets_float32_inside_construct(half: Any) -> None:
    class Meeting(nn.Cell):
        def construct(self, x: Any, y: Any) -> Any:
            return x + y, y * x, x > y, x - 1.0

    x, y = Tensor([1.0, 2.0], half), Tensor([0.5, 0.5])
    total, product, larger, less = Meeting()(x, y)
    assert (total.dtype, product.dtype, larger.dtype, less.dtype) == (float32, float32, "bool", half)


@pytest.mark.tensorflow
def test_outside_of_construct_half_meets_float32_as_inside() -> None:
    assert (Tensor([1.0], float16) + Tensor([0.5])).dtype == "float32"


def test_a_cell_of_cells_and_keras_layers_trains_inside_a_keras_model() -> None:
    class Mixed(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Dense(4, 8, activation="relu")
            self.drop = nn.Dropout(p=0.1)

        def construct(self, x: Any) -> Any:
            return self.drop(self.first(x))

    cell = Mixed()
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(1)(cell(inputs)))
    model.compile("sgd", "mse")
    before = cell.first.weight.asnumpy().copy()
    x = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
    history = model.fit(x, x.sum(1, keepdims=True), batch_size=8, epochs=4, verbose=0).history["loss"]
    assert history[-1] < history[0]
    assert np.abs(cell.first.weight.asnumpy() - before).max() > 0
    assert len(model.trainable_variables) == 4 and not cell.training


def test_a_cell_without_construct_or_without_super_says_so() -> None:
    class Forgetful(nn.Cell):
        def __init__(self) -> None:
            self.fc = nn.Dense(1, 1)

    with pytest.raises(AttributeError, match=r"Write super\(\).__init__\(\) as the first line of Forgetful.__init__"):
        Forgetful()
    with pytest.raises(AttributeError, match="^Cell: a Cell must define its forward pass"):
        nn.Cell()(1)


def test_a_cell_of_a_mindir_graph_says_what_to_use() -> None:
    with pytest.raises(NotImplementedError, match="^GraphCell: .* Write "):
        nn.GraphCell(nn.ReLU(), 2)


def test_names_may_be_given_a_prefix_of_the_users() -> None:
    net = Net()
    net.update_parameters_name("student.")
    assert [p.name for p in net.trainable_params()][:2] == ["student.scale", "student.block.conv.weight"]
    assert [*net.init_parameters_data(auto_parallel_mode=False)] == [*net.get_parameters()]


def test_a_cell_and_its_parts_may_have_any_name_of_python() -> None:
    class _Größe(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self._innen = nn.Dense(2, 2)
            self.schön = nn.ReLU()

        def construct(self, x: Any) -> Any:
            return self.schön(self._innen(x))

    network = _Größe()
    x = Tensor(np.ones((1, 2), np.float32))
    np.testing.assert_allclose(Model(network).predict(x).asnumpy(), network(x).asnumpy(), rtol=1e-6)


def test_auto_prefix_is_what_it_is_true_of() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__(Net)

    assert Net()._auto_prefix is True
