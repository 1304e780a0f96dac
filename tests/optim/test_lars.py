"""LARS: the length of steps, whose decay and rate it takes, and what is refused; the reference has no CPU kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain.nn as nn
from mixtrain import backend
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from tests.optim.setting import parameter, tensors, values

PLAIN = backend.JitChoice(False, "test")


def test_the_reference_documents_these_gradients() -> None:
    w = Parameter(np.array([[0.5, 0.8, 0.2], [0.6, 0.4, 0.2]], np.float32), "w")
    optimizer = nn.LARS(nn.SGD([w], 1.0))
    before = w.asnumpy()
    optimizer((Tensor(np.array([[0.4, 0.4, 0.5], [0.2, 0.4, 0.3]], np.float32)),))
    expected = [[0.0005265, 0.0005265, 0.00065813], [0.00026325, 0.0005265, 0.00039488]]
    np.testing.assert_allclose(before - w.asnumpy(), expected, atol=1e-7)


def test_the_weight_decay_inside_enters_the_length_and_is_not_applied_again() -> None:
    w = parameter("w", 3.0, 4.0)
    inner = nn.SGD([w], 1.0, weight_decay=0.5)
    nn.LARS(inner, coefficient=0.1, epsilon=0.0)(tensors([0.0, 2.0]))
    # |w| = 5, |g| = 2: 0.1 * 5 / (2 + 0.5 * 5) * (g + 0.5 * w)
    assert values(w) == pytest.approx([3.0 - 1.5 / 9.0, 4.0 - 4.0 / 9.0], rel=1e-5)
    assert not inner.exec_weight_decay


def test_a_decoupled_decay_inside_is_not_applied_either() -> None:
    w = parameter("w.bias", 1.0)
    nn.LARS(nn.AdamWeightDecay([w], 0.5, weight_decay=0.5))(tensors([0.0]))
    assert values(w) == [1.0]


def test_names_with_bias_or_layernorm_get_their_gradients_as_they_are() -> None:
    names = ("fc.bias", "LayerNorm.gamma", "fc.weight")
    parameters = [parameter(name, 1.0) for name in names]
    optimizer = nn.LARS(nn.SGD(parameters, 0.5, weight_decay=0.5), coefficient=0.1, epsilon=0.0)
    assert optimizer.lars_flag == (False, False, True)
    optimizer(tensors([1.0], [1.0], [1.0]))
    assert [values(item) for item in parameters] == [[0.5], [0.5], pytest.approx([0.95])]


def test_the_loss_scale_inside_is_undone_once() -> None:
    w = parameter("bias", 1.0)
    optimizer = nn.LARS(nn.SGD([w], 0.5, loss_scale=4.0))
    optimizer(tensors([4.0]))
    assert (values(w), optimizer.loss_scale) == ([0.5], 4.0)


@pytest.mark.parametrize(("coefficient", "moved"), [(0.1, 0.1), (8.0, 0.5)])
def test_clipping_takes_the_smaller_of_the_layers_rate_and_the_optimizers(coefficient: float, moved: float) -> None:
    w = parameter("w", 1.0)
    nn.LARS(nn.SGD([w], 0.5), coefficient=coefficient, epsilon=0.0, use_clip=True)(tensors([1.0]))
    assert values(w) == pytest.approx([1.0 - moved])


def test_compiled_steps_follow_the_schedule_inside_and_count_once() -> None:
    w = parameter("bias", 1.0)
    optimizer = nn.LARS(nn.SGD([w], [0.5, 0.25, 0.125]), use_clip=True)
    step = backend.compile_function(optimizer, choice=PLAIN)
    for _ in range(3):
        step(tensors([1.0]))
    assert (values(w), values(optimizer.global_step), float(optimizer.get_lr())) == ([0.125], [3], 0.125)


def test_it_holds_what_the_optimizer_inside_holds_once() -> None:
    optimizer = nn.LARS(nn.Momentum([parameter("w", 1.0)], 0.1, 0.9))
    names = [variable.name for variable in optimizer.state_variables()]
    assert sorted(names) == ["global_step", "learning_rate", "moments.w", "momentum"]


def test_other_arguments_are_refused() -> None:
    wrong: Any = 0.1
    with pytest.raises(TypeError, match="LARS: optimizer must be a Optimizer; got float 0.1"):
        nn.LARS(wrong)
    groups = [{"params": [parameter("w", 1.0)], "lr": [0.1, 0.2]}]
    with pytest.raises(ValueError, match="LARS: with use_clip, groups must not have rates that change"):
        nn.LARS(nn.SGD(groups), use_clip=True)


def test_scalars_and_kernels_have_lengths_too() -> None:
    scalar, kernel = Parameter(2.0, "scalar"), Parameter(np.ones((2, 2, 1, 1), np.float32), "kernel")
    optimizer = nn.LARS(nn.SGD([scalar, kernel], 1.0), coefficient=0.5, epsilon=0.0)
    optimizer((Tensor(-1.0), Tensor(np.full((2, 2, 1, 1), 3.0, np.float32))))
    assert values(scalar) == 3.0
    assert kernel.asnumpy() == pytest.approx(0.5)
