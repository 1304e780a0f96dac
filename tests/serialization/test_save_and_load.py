"""Checkpoints of networks and of given values: what is in them, and what is refused."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import keras
import numpy as np
import pytest
import safetensors

import mixtrain
import mixtrain.nn as nn
from mixtrain import Parameter, Tensor
from mixtrain.serialization import load_checkpoint, load_param_into_net, save_checkpoint
from mixtrain.serialization.names import parameters_by_name, states_by_name
from tests.backends import held_as


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.bn = nn.BatchNorm2d(2)
        self.drop = nn.Dropout(p=0.5)
        self.fc = nn.Dense(32, 3)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path


def file(folder: pathlib.Path, name: str = "a.ckpt") -> str:
    return str(folder / name)


# ---- round trips ----------------------------------------------------------------------------------------------
def test_a_network_comes_back_with_its_statistics(folder: pathlib.Path) -> None:
    net, other = Net(), Net()
    net.bn.moving_mean.set_data(np.array([3.0, 4.0], np.float32))
    save_checkpoint(net, file(folder))
    assert load_param_into_net(other, load_checkpoint(file(folder))) == ([], [])
    assert other.bn.moving_mean.asnumpy().tolist() == [3.0, 4.0]
    np.testing.assert_array_equal(other.conv.weight.asnumpy(), net.conv.weight.asnumpy())


def test_names_are_those_of_the_parameters(folder: pathlib.Path) -> None:
    net = Net()
    save_checkpoint(net, file(folder))
    names = [parameter.name for parameter in net.get_parameters()]
    loaded = load_checkpoint(file(folder))
    assert list(loaded) == names and [parameter.name for parameter in loaded.values()] == names
    assert all(isinstance(parameter, Parameter) and parameter.requires_grad for parameter in loaded.values())


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "float16", "bfloat16", "float32", "float64"],
)
def test_every_format_is_kept_to_the_bit(folder: pathlib.Path, dtype: str) -> None:
    values = Tensor(np.array([[0, 1], [3, 100]]), dtype)
    given = {"x": Parameter(values), "empty": Parameter(values[:0]), "scalar": Parameter(values[1, 0])}
    save_checkpoint(given, file(folder))
    loaded = load_checkpoint(file(folder))
    assert {name: (tuple(p.shape), p.dtype.name) for name, p in loaded.items()} == {
        "x": ((2, 2), held_as(dtype)), "empty": ((0, 2), held_as(dtype)), "scalar": ((), held_as(dtype)),
    }
    np.testing.assert_array_equal(loaded["x"].asnumpy(), mixtrain.backend.to_numpy(values))


def test_odd_values_of_bfloat16_are_kept(folder: pathlib.Path) -> None:
    values = Tensor([np.inf, -np.inf, np.nan, -0.0, 1e-40, 3.14159], "bfloat16")
    save_checkpoint({"x": values}, file(folder))
    result = load_checkpoint(file(folder))["x"].asnumpy()
    np.testing.assert_array_equal(result, mixtrain.backend.to_numpy(values))
    assert np.signbit(result[3])


def test_appended_values_come_back_as_parameters_and_strings(folder: pathlib.Path) -> None:
    more = {"e": 3, "f": 0.5, "b": True, "s": "hey, ünïcode", "t": Tensor([1, 2]), "slash/in/it": 1, ".": 2}
    save_checkpoint(nn.Dense(1, 1), file(folder), append_dict=more)
    loaded = load_checkpoint(file(folder))
    assert list(loaded) == ["weight", "bias", *more]
    assert loaded["s"] == "hey, ünïcode"
    result = {name: (loaded[name].dtype.name, loaded[name].asnumpy().tolist()) for name in "efbt"}
    assert result == {
        "e": (held_as("int64"), 3), "f": ("float32", 0.5), "b": ("bool", True),
        "t": (str(more["t"].dtype.name), [1, 2]),
    }
    assert (int(loaded["slash/in/it"]), int(loaded["."])) == (1, 2)


def test_lists_and_dicts_are_written_too(folder: pathlib.Path) -> None:
    net = nn.Dense(2, 1)
    save_checkpoint(net.trainable_params(), file(folder))
    assert list(load_checkpoint(file(folder))) == ["weight", "bias"]
    save_checkpoint([{"name": "a", "data": Tensor([1.0])}, {"name": "b", "data": np.zeros(2)}], file(folder))
    assert list(load_checkpoint(file(folder))) == ["a", "b"]
    save_checkpoint({"a": np.ones(2), "s": "x"}, file(folder))
    loaded = load_checkpoint(file(folder))
    assert (loaded["a"].dtype.name, loaded["s"]) == (held_as("float64"), "x")
    save_checkpoint(loaded, file(folder, "b.ckpt"))
    assert list(load_checkpoint(file(folder, "b.ckpt"))) == ["a", "s"]


def test_some_parameters_can_be_chosen_on_either_side(folder: pathlib.Path) -> None:
    save_checkpoint(Net(), file(folder), choice_func=lambda name: not name.startswith("bn"))
    names = ["conv.weight", "fc.weight", "fc.bias"]
    assert list(load_checkpoint(file(folder))) == names
    assert list(load_checkpoint(file(folder), filter_prefix="conv")) == names[1:]
    assert list(load_checkpoint(file(folder), specify_prefix=["conv", "fc"], filter_prefix=("fc.b",))) == names[:2]
    assert list(load_checkpoint(file(folder), choice_func=lambda name: name.endswith("bias"))) == names[2:]
    assert list(load_checkpoint(file(folder), choice_func=lambda name: False, filter_prefix="fc")) == names[:1]


def test_the_ending_is_added_where_it_is_missing(folder: pathlib.Path) -> None:
    for name in ("a", "b.ckpt", "myckpt", "c.pt"):
        save_checkpoint(nn.Dense(1, 1), file(folder, name))
    assert sorted(os.listdir(folder)) == ["a.ckpt", "b.ckpt", "c.pt.ckpt", "myckpt"]


def test_a_thread_writes_the_values_of_the_call(folder: pathlib.Path) -> None:
    net = nn.Dense(1, 1, weight_init="ones")
    save_checkpoint(net, file(folder), async_save=True)
    net.weight.set_data([[5.0]])
    assert load_checkpoint(file(folder))["weight"].asnumpy().tolist() == [[1.0]]


def test_the_file_is_plain_safetensors_with_the_names_of_the_parameters(folder: pathlib.Path) -> None:
    save_checkpoint(nn.Dense(2, 1, weight_init="ones"), file(folder))
    with safetensors.safe_open(file(folder), "np") as read:
        assert set(read.keys()) == {"weight", "bias", "mixtrain:description"}
        assert read.get_tensor("weight").tolist() == [[1.0, 1.0]]
        assert read.metadata()["mixtrain.checkpoint"].startswith("version 2, sha256 ")


def test_names_that_mean_something_in_the_file_are_kept(folder: pathlib.Path) -> None:
    names = ["__metadata__", "mixtrain:description", "mixtrain:state:x", "", "dé\n\0", "x" * 70000]
    save_checkpoint({name: np.full(2, number) for number, name in enumerate(names)}, file(folder))
    loaded = load_checkpoint(file(folder))
    assert {name: value.asnumpy().tolist() for name, value in loaded.items()} == {
        name: [number, number] for number, name in enumerate(names)
    }


# ---- names ----------------------------------------------------------------------------------------------------
def keras_net() -> keras.Model:
    layers = keras.layers
    inner = keras.Sequential([layers.Dense(2), layers.Dropout(0.5)], name="inner")
    net = keras.Sequential([keras.Input((3,)), layers.Dense(4), layers.Dense(3), inner, layers.Dense(1, name="head")])
    net.build((None, 3))
    return net


def test_names_of_keras_layers_do_not_depend_on_what_was_made_before() -> None:
    names = [
        "dense.kernel", "dense.bias", "dense_1.kernel", "dense_1.bias", "inner.dense.kernel", "inner.dense.bias",
        "head.kernel", "head.bias",
    ]
    assert list(parameters_by_name("test", keras_net())) == names
    assert list(parameters_by_name("test", keras_net())) == names
    assert list(states_by_name(keras_net())) == ["inner.dropout.seed_generator_state"]


def test_a_train_cell_names_the_variables_of_a_keras_optimizer_after_the_network(folder: pathlib.Path) -> None:
    def step() -> nn.Cell:
        return mixtrain.amp.build_train_network(keras_net(), keras.optimizers.SGD(0.1, 0.9), nn.MSELoss())

    first, names = step(), list(parameters_by_name("test", step()))
    assert names == list(parameters_by_name("test", first))
    assert names[8:12] == ["iteration", "learning_rate", "momentum.dense.kernel", "momentum.dense.bias"]
    first(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 1), np.float32)))
    save_checkpoint(first, file(folder))
    other = step()
    assert load_param_into_net(other, load_checkpoint(file(folder))) == ([], [])
    assert int(other.optimizer.iterations) == 1


def test_a_cell_that_holds_keras_layers_and_a_keras_model_that_holds_a_cell_have_names_below_their_own() -> None:
    class Mixed(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Dense(2, 2)
            self.second = keras.layers.Dense(2)
            self.second.keras_layer.build((None, 2))

    net = Mixed()
    assert list(parameters_by_name("test", net)) == ["first.weight", "first.bias", "second.kernel", "second.bias"]
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    names = list(parameters_by_name("test", nn.TrainOneStepCell(net, optimizer)))
    assert [name for name in names if "second" in name] == [
        "second.kernel", "second.bias", "moments.second.kernel", "moments.second.bias",
    ]
    cell = nn.SequentialCell([nn.Dense(3, 2), nn.Dropout(p=0.5)])
    model = keras.Sequential([keras.Input((3,)), cell.as_keras_layer(), keras.layers.Dense(1)])
    assert list(parameters_by_name("test", model)) == [
        "cell_layer.0.weight", "cell_layer.0.bias", "dense.kernel", "dense.bias",
    ]
    assert list(states_by_name(model)) == ["cell_layer.1.seed_generator"]


# ---- refusals -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"save_obj": 3}, TypeError, "must be a Cell or a built Keras model.*model.train_network"),
        ({"save_obj": keras.optimizers.SGD()}, TypeError, "model.train_network"),
        ({"save_obj": keras.layers.Dense(2)}, ValueError, "must be built"),
        ({"save_obj": [3]}, TypeError, "name and data"),
        ({"save_obj": [{"name": "a"}]}, TypeError, "name and data"),
        ({"save_obj": {3: Tensor(1.0)}}, TypeError, "name must be a str"),
        ({"save_obj": {"a": [1.0]}}, TypeError, "a: its value must be a Parameter"),
        ({"ckpt_file_name": 3}, TypeError, "ckpt_file_name must be a str"),
        ({"async_save": "fast"}, ValueError, "thread, process"),
        ({"async_save": 3}, TypeError, "True or False"),
        ({"integrated_save": 1}, TypeError, "integrated_save"),
        ({"append_dict": [1]}, TypeError, "append_dict"),
        ({"append_dict": {"a": [1]}}, TypeError, r"append_dict\['a'\]"),
        ({"enc_key": b"0" * 16}, ValueError, "not encrypted"),
        ({"format": "npz"}, ValueError, "format must be one of ckpt, safetensors"),
        ({"remove_redundancy": True}, ValueError, "one device"),
        ({"choice": 3}, TypeError, "choice"),
    ],
)
def test_what_cannot_be_written_is_refused(
    folder: pathlib.Path, arguments: dict[str, Any], kind: type[Exception], says: str
) -> None:
    given = {"save_obj": nn.Dense(1, 1), "ckpt_file_name": file(folder), **arguments}
    with pytest.raises(kind, match=says):
        save_checkpoint(**given)
    assert os.listdir(folder) == []


def test_folders_that_are_missing_or_taken_for_files_are_refused(folder: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match="a folder that exists"):
        save_checkpoint(nn.Dense(1, 1), file(folder, "none/a.ckpt"))
    with pytest.raises(IsADirectoryError, match="to be a file"):
        save_checkpoint(nn.Dense(1, 1), str(folder))


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"ckpt_file_name": 3}, TypeError, "must be a str"),
        ({"ckpt_file_name": "no.ckpt"}, ValueError, "must be a file that exists"),
        ({"ckpt_file_name": "no.pt"}, ValueError, "must end with ckpt"),
        ({"filter_prefix": 3}, TypeError, "filter_prefix must be a str"),
        ({"filter_prefix": ""}, ValueError, "must not be empty"),
        ({"specify_prefix": []}, ValueError, "must not be empty"),
        ({"specify_prefix": "zz"}, ValueError, "got none"),
        ({"dec_key": b"0" * 16}, ValueError, "not encrypted"),
        ({"map_location": "cpu"}, TypeError, "map_location"),
    ],
)
def test_what_cannot_be_read_is_refused(
    folder: pathlib.Path, arguments: dict[str, Any], kind: type[Exception], says: str
) -> None:
    save_checkpoint(nn.Dense(1, 1), file(folder))
    with pytest.raises(kind, match=says):
        load_checkpoint(**{"ckpt_file_name": file(folder), **arguments})
