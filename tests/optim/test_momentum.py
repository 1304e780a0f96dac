"""Momentum: the rule by hand, its slots and its arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import nn
from mixtrain.optim import Momentum
from tests.optim.setting import parameter, tensors, values


def test_two_steps_by_hand() -> None:
    w = parameter("w", 1.0, -2.0)
    optimizer = Momentum([w], 0.5, 0.5)
    assert optimizer(tensors([1.0, 2.0])) == (True,)
    assert values(w) == [0.5, -3.0]
    optimizer(tensors([1.0, 2.0]))
    assert values(w) == [-0.25, -4.5]
    assert values(optimizer.moments[0]) == [1.5, 3.0]


def test_nesterov_looks_ahead_with_the_new_moment() -> None:
    w = parameter("w", 0.0)
    optimizer = Momentum([w], 1.0, 0.5, use_nesterov=True)
    optimizer(tensors([1.0]))
    assert values(w) == [-1.5]
    optimizer(tensors([1.0]))
    assert values(w) == [-1.5 - (1.0 + 0.5 * 1.5)]


def test_the_slots_are_named_after_the_parameters_and_start_at_zero() -> None:
    optimizer = Momentum([parameter("conv.weight", 1.0), parameter("conv.bias", 1.0)], 0.1, 0.9)
    assert [slot.name for slot in optimizer.moments] == ["moments.conv.weight", "moments.conv.bias"]
    assert [values(slot) for slot in optimizer.moments] == [[0.0], [0.0]]
    assert not any(slot.requires_grad for slot in optimizer.moments)


def test_an_int_momentum_is_taken() -> None:
    assert Momentum([parameter("w", 1.0)], 0.1, 1).momentum == 1.0


def test_bad_arguments_are_refused() -> None:
    w = parameter("w", 1.0)
    with pytest.raises(ValueError, match=r"^Momentum: momentum must be at least 0; got -0.9. Write momentum=0.9.$"):
        Momentum([w], 0.1, -0.9)
    with pytest.raises(TypeError, match="momentum must be a number"):
        Momentum([w], 0.1, "0.9")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="use_nesterov must be True or False"):
        Momentum([w], 0.1, 0.9, use_nesterov=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="momentum"):
        Momentum([w], 0.1)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [nn.Momentum, nn.SGD])
def test_a_momentum_that_is_assigned_between_compiled_steps_counts_in_the_next(kind: Any) -> None:
    # Recorded on MindSpore 2.10 in graph mode; its PyNative kernel keeps the first momentum.
    network = nn.Dense(2, 1, weight_init="ones", bias_init="ones")
    step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), kind(network.trainable_params(), 0.1, 0.9))
    step.set_train()
    biases = []
    for momentum in (0.9, 0.5, 0.0):
        step.optimizer.momentum = mixtrain.Tensor(momentum, mixtrain.float32)
        step(mixtrain.Tensor(np.ones((1, 2), np.float32)), mixtrain.Tensor(np.zeros((1, 1), np.float32)))
        biases.append(network.bias.asnumpy().item())
    assert biases == pytest.approx([0.4, -0.14, -0.056], abs=1e-6)
    assert [parameter.name for parameter in step.optimizer.get_parameters()].count("momentum") == 1
