"""Parameter groups: rates, decay, order, and groups that make no sense."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from mixtrain import Parameter, Tensor
from mixtrain.optim import SGD, LearningRateSchedule, Momentum
from tests.optim.setting import parameter, tensors, values


def test_a_group_has_its_own_rate_and_the_rest_the_optimizers() -> None:
    a, b = parameter("a", 1.0), parameter("b", 1.0)
    optimizer = SGD([{"params": [a], "lr": 0.25}, {"params": [b]}], 0.5)
    optimizer(tensors([1.0], [1.0]))
    assert (values(a), values(b)) == ([0.75], [0.5])
    assert optimizer.is_group and optimizer.is_group_lr and not optimizer.dynamic_lr
    assert [float(rate) for rate in optimizer.get_lr()] == [0.25, 0.5]
    assert [rate.name for rate in optimizer.learning_rate] == ["learning_rate_group_0", "learning_rate"]


def test_without_order_params_the_groups_follow_one_another() -> None:
    a, b, c = (parameter(name, 1.0) for name in "abc")
    assert SGD([{"params": [c, a]}, {"params": [b]}], 0.1).parameters == (c, a, b)


def test_order_params_order_the_gradients_and_keep_each_groups_rate() -> None:
    a, b = parameter("a", 1.0), parameter("b", 1.0)
    optimizer = SGD([{"params": [b], "lr": 0.25}, {"params": [a]}, {"order_params": [a, b]}], 0.5)
    assert optimizer.parameters == (a, b)
    optimizer(tensors([1.0], [2.0]))
    assert (values(a), values(b)) == ([0.5], [0.5])


def test_decay_in_groups_spares_no_name() -> None:
    gamma, weight = parameter("gamma", 1.0), parameter("weight", 1.0)
    optimizer = SGD([{"params": [gamma]}, {"params": [weight], "weight_decay": 0.0}], 0.5, weight_decay=0.5)
    optimizer((None, None))
    assert (values(gamma), values(weight)) == ([0.75], [1.0])
    assert optimizer.weight_decay == (0.5, 0.0)
    assert optimizer.get_weight_decay() == (0.5, 0.0)


def test_generators_of_parameters_are_read_once() -> None:
    a, b = parameter("a", 1.0), parameter("b", 1.0)
    groups: list[Any] = [{"params": filter(lambda item: item.name == name, [a, b])} for name in ("a", "b")]
    groups[0]["params"], groups[1]["params"] = (item for item in [a]), iter([b])
    assert SGD(groups, 0.1).parameters == (a, b)


def test_lists_and_schedules_are_rates_of_groups_too() -> None:
    class Quarter(LearningRateSchedule):
        def construct(self, global_step: Any) -> Any:
            return 0.25 * global_step + 0.25

    a, b, c = (parameter(name, 0.0) for name in "abc")
    optimizer = SGD([{"params": [a], "lr": [1.0, 0.5]}, {"params": [b], "lr": Quarter()}, {"params": [c]}], 2.0)
    for _ in range(2):
        optimizer(tensors([1.0], [1.0], [1.0]))
    assert (values(a), values(b), values(c)) == ([-1.5], [-0.75], [-4.0])
    assert optimizer.dynamic_lr
    state = {variable.name for variable in optimizer.state_variables()}
    assert state == {"global_step", "learning_rate_group_0", "learning_rate"}


def test_the_rate_of_a_parameter_can_be_asked_for() -> None:
    a, b, foreign = parameter("a", 1.0), parameter("b", 1.0), parameter("c", 1.0)
    optimizer = SGD([{"params": [a], "lr": 0.25}, {"params": [b]}], 0.5)
    assert [values(rate) for rate in optimizer.get_lr_parameter([b, a])] == [0.5, 0.25]
    with pytest.raises(ValueError, match="param must be one that it trains"):
        optimizer.get_lr_parameter(foreign)


A, B = parameter("a", 1.0), parameter("b", 1.0)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([{"lr": 0.1}], 'a parameter group must have "params"'),
        ([{"params": []}], "params must not be empty"),
        ([{"params": [A], "learning_rate": 0.1}], "a key of a parameter group must be one of params, lr"),
        ([{"params": [A], "lr": -0.1}], "learning_rate must be at least 0"),
        ([{"params": [A], "weight_decay": -0.1}], "weight_decay must be at least 0"),
        ([{"params": [A]}, {"params": [A]}], "each parameter must be listed once"),
        ([{"params": [A]}, {"order_params": [A], "lr": 0.1}], '"order_params" must be alone'),
        ([{"params": [A]}, {"order_params": [A, B]}], "order_params must hold every parameter of the groups"),
        (
            [{"params": [A], "lr": [0.1, 0.2]}, {"params": [B], "lr": [0.1]}],
            "lists of learning rates must have one length; got 'lengths [1, 2]'",
        ),
        ([{"params": [A, B]}, {"order_params": [A]}], "order_params must hold every parameter of the groups"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Momentum(groups, 0.1, 0.9)


def test_the_gradients_of_a_centralized_group_lose_their_mean_over_each_output() -> None:
    # By the definition of MindSpore 2.10, where a second axis that is no multiple of 16 is left alone too.
    wide = Parameter(np.zeros((2, 16), np.float32), name="wide")
    narrow = Parameter(np.zeros((2, 3), np.float32), name="narrow")
    groups = [{"params": [wide, narrow], "grad_centralization": True}]
    gradient = np.arange(32, dtype=np.float32).reshape(2, 16)
    SGD(groups, 1.0)((Tensor(gradient), Tensor(np.ones((2, 3), np.float32))))
    np.testing.assert_allclose(wide.asnumpy(), gradient.mean(1, keepdims=True) - gradient)
    np.testing.assert_allclose(narrow.asnumpy(), -np.ones((2, 3)))
    plain = Parameter(np.zeros((2, 16), np.float32), name="plain")
    SGD([{"params": [plain], "grad_centralization": False}], 1.0)((Tensor(gradient),))
    np.testing.assert_allclose(plain.asnumpy(), -gradient)
