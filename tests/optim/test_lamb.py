"""Lamb against its formula in NumPy: the reference has no kernel for it on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain.nn as nn
from mixtrain import backend
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from tests.nn.reference import case
from tests.optim.setting import parameter, tensors, values

PLAIN = backend.JitChoice(False, "test")


def by_formula(weight: Any, gradients: Any, rate: float, decay: float) -> Any:
    """Return the weight after the gradients, in float64."""
    mean, square = np.zeros(weight.shape), np.zeros(weight.shape)
    for step, gradient in enumerate(gradients.astype(float), start=1):
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        direction = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-6) + decay * weight
        ratio = min(float(np.linalg.norm(weight) / np.linalg.norm(direction)), 10.0)
        weight = weight - rate * ratio * direction
    return weight


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_five_compiled_steps_follow_the_formula(decay: float) -> None:
    reference = case("optim", "optim_reference")
    start, gradients = reference["start_fc.weight"], reference["grad_fc.weight"]
    w = Parameter(start, "fc.weight")
    step = backend.compile_function(nn.Lamb([w], 0.1, weight_decay=decay), choice=PLAIN)
    for gradient in gradients:
        step((Tensor(gradient),))
    np.testing.assert_allclose(w.asnumpy(), by_formula(start, gradients, 0.1, decay), rtol=1e-4)


def test_the_ratio_is_one_for_zero_weights_and_at_most_ten() -> None:
    zero, long = parameter("zero", 0.0), parameter("long", 100.0)
    nn.Lamb([zero, long], 0.5)(tensors([1.0], [1.0]))
    assert values(zero) + values(long) == pytest.approx([-0.5, 95.0], rel=1e-5)


def test_groups_give_rates_and_decays() -> None:
    w, b = parameter("w", 3.0), parameter("b", 3.0)
    optimizer = nn.Lamb([{"params": [w], "lr": 0.5, "weight_decay": 0.0}, {"params": [b]}], 0.25, weight_decay=1.0)
    optimizer(tensors([1.0], [0.0]))
    assert values(w) + values(b) == pytest.approx([1.5, 2.25], rel=1e-5)


def test_slots_have_the_references_names() -> None:
    optimizer = nn.Lamb([parameter("w", 1.0)], 0.1)
    assert [slot[0].name for slot in (optimizer.moments1, optimizer.moments2)] == ["lamb_m.w", "lamb_v.w"]


def test_a_decay_rate_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(ValueError, match="Lamb: beta2 must be less than 1; got 1.0"):
        nn.Lamb([parameter("w", 1.0)], 0.1, beta2=1.0)
