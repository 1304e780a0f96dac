"""load_param_into_net: what is loaded where, what is left, and that an error changes nothing."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
from mixtrain import Parameter
from mixtrain.serialization import load_checkpoint, load_param_into_net, save_checkpoint
from mixtrain.serialization.into_net import _match_names


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, weight_init="zeros")
        self.fc = nn.Dense(2, 3, weight_init="zeros")


def values(net: nn.Cell) -> list[Any]:
    return [parameter.asnumpy().tolist() for parameter in net.get_parameters()]


def test_what_is_missing_is_returned_and_told() -> None:
    net = Net()
    with pytest.warns(UserWarning, match="2 of 3 parameters.*conv.weight, fc.weight"):
        result = load_param_into_net(net, {"fc.bias": Parameter([1.0, 2.0, 3.0]), "other": Parameter(1.0), "s": "text"})
    assert result == (["conv.weight", "fc.weight"], ["other", "s"])
    assert net.fc.bias.asnumpy().tolist() == [1.0, 2.0, 3.0]


def test_a_prefix_of_the_names_is_cut_off_unless_strict() -> None:
    net = nn.Dense(1, 1)
    given = {"net.fc.weight": Parameter([[4.0]]), "net.fc.bias": Parameter([5.0])}
    assert load_param_into_net(net, given) == ([], [])
    assert values(net) == [[[4.0]], [5.0]]
    with pytest.warns(UserWarning, match="2 of 2 parameters"):
        result = load_param_into_net(net, given, strict_load=True)
    assert result == (["weight", "bias"], ["net.fc.weight", "net.fc.bias"])


def test_each_parameter_may_have_a_prefix_of_its_own() -> None:
    net = Net()
    given = {"a.fc.bias": Parameter([4.0, 2.0, 3.0]), "b.fc.weight": Parameter(np.ones((3, 2), np.float32))}
    with pytest.warns(UserWarning, match="1 of 3"):
        assert load_param_into_net(net, given) == (["conv.weight"], [])
    assert net.fc.weight.asnumpy().sum() == 6.0


def test_what_stands_before_the_slots_of_an_optimizer_is_no_prefix(tmp_path: pathlib.Path) -> None:
    net, path = Net(), str(tmp_path / "train.ckpt")
    save_checkpoint(nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.1, 0.9)), path)
    with pytest.warns(UserWarning, match="2 of 3"):
        missing, unused = load_param_into_net(Net(), load_checkpoint(path, filter_prefix="fc"))
    assert missing == ["fc.weight", "fc.bias"]
    assert "moments.fc.weight" in unused


@pytest.mark.parametrize("dtype", ["float16", pytest.param("float64", marks=pytest.mark.tensorflow), "bfloat16"])
def test_floats_become_the_networks_floats_unless_strict(dtype: str) -> None:
    net = nn.Dense(1, 1, weight_init="zeros")
    given = {"weight": Parameter(mixtrain.Tensor([[2.0]], dtype)), "bias": Parameter([1.0])}
    with pytest.warns(UserWarning, match="converted.*weight"):
        assert load_param_into_net(net, given) == ([], [])
    assert values(net) == [[[2.0]], [1.0]]
    with pytest.raises(RuntimeError, match=f"weight to be float32 as in the network; got {dtype}"):
        load_param_into_net(net, given, strict_load=True)


@pytest.mark.parametrize(
    ("bias", "says"),
    [
        (np.zeros(2, np.float32), r"fc.bias to have shape \(3,\) as in the network; got \(2,\)"),
        (np.zeros((1, 3), np.float32), r"fc.bias to have shape \(3,\) as in the network; got \(1, 3\)"),
        (np.zeros(3, np.int32), "fc.bias to be float32 as in the network; got int32"),
    ],
)
def test_a_misfit_names_the_parameter_and_leaves_the_network_as_it_was(bias: np.ndarray, says: str) -> None:
    net = Net()
    before = values(net)
    given = {"conv.weight": Parameter(np.ones((2, 1, 3, 3), np.float32)), "fc.bias": Parameter(bias)}
    with pytest.raises(RuntimeError, match=says):
        load_param_into_net(net, given)
    assert values(net) == before


def test_axes_of_1_at_the_end_are_cut_off() -> None:
    net = nn.Dense(1, 2, has_bias=False)
    load_param_into_net(net, {"weight": Parameter(np.array([3.0, 4.0], np.float32).reshape(2, 1, 1, 1))})
    assert values(net) == [[[3.0], [4.0]]]


def test_an_optimizer_takes_its_slots_its_rate_and_its_count(tmp_path: pathlib.Path) -> None:
    def optimizer() -> tuple[nn.Cell, nn.Optimizer]:
        net = nn.Dense(1, 1, weight_init="ones", bias_init="zeros")
        return net, nn.Momentum(net.trainable_params(), 0.5, 0.9)

    net, first = optimizer()
    first((mixtrain.Tensor([[1.0]]), mixtrain.Tensor([2.0])))
    save_checkpoint(first, str(tmp_path / "o.ckpt"))
    other, second = optimizer()
    assert load_param_into_net(second, load_checkpoint(str(tmp_path / "o.ckpt"))) == ([], [])
    assert second.global_step.asnumpy().tolist() == [1] and second.moments[1].asnumpy().tolist() == [2.0]
    assert values(other) == [[[0.5]], [-1.0]]


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ((3, {}), TypeError, "must be a Cell or a built Keras model"),
        ((Net, []), TypeError, "parameter_dict must be a Mapping"),
        ((Net, {"a": 3}), TypeError, "'a' must be a str's Parameter"),
        ((Net, {3: Parameter(1.0)}), TypeError, "3 must be a str's Parameter"),
        ((Net, {}, 3), TypeError, "strict_load must be True or False"),
        ((Net, {}, False, True), ValueError, "one device"),
    ],
)
def test_wrong_arguments_are_refused(arguments: tuple[Any, ...], kind: type[Exception], says: str) -> None:
    net = arguments[0]() if callable(arguments[0]) else arguments[0]
    with pytest.raises(kind, match=says):
        load_param_into_net(net, *arguments[1:])


def test_a_checkpoint_without_the_state_of_a_train_cell_says_what_will_differ(tmp_path: pathlib.Path) -> None:
    def train_cell(*more: nn.Cell) -> nn.Cell:
        net = nn.SequentialCell([nn.Dense(1, 1), *more])
        return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))

    save_checkpoint(train_cell(nn.Dropout(p=0.5)), str(tmp_path / "a.ckpt"))
    with pytest.warns(UserWarning, match="no state for 2.seed_generator"):
        load_param_into_net(train_cell(nn.ReLU(), nn.Dropout(p=0.5)), load_checkpoint(str(tmp_path / "a.ckpt")))


class Counted(str):
    """A name that counts how often it is looked at from its beginning or end."""

    looks = 0

    def __getitem__(self, key: Any) -> str:
        Counted.looks += 1
        return super().__getitem__(key)

    def startswith(self, *arguments: Any) -> bool:
        Counted.looks += 1
        return super().startswith(*arguments)


@pytest.mark.parametrize("of", ["prefixes", "slots"])
def test_time_to_match_names_follows_their_number(of: str) -> None:
    def looks(count: int) -> int:
        names = [f"m{number}.fc.bias" for number in range(count)]
        names += [f"m{number}.m{number}.fc.bias" for number in range(count)] if of == "slots" else []
        Counted.looks = 0
        _match_names({"fc.bias": 0, "fc.weight": 0}, dict.fromkeys(map(Counted, names)), False)
        return Counted.looks

    assert 0 < looks(400) <= 4 * looks(100) + 50
