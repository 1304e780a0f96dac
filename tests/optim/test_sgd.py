"""SGD: plain, with momentum, dampening and look-ahead."""

from __future__ import annotations

import pytest

from mixtrain.cell.cell import Cell
from mixtrain.optim import SGD
from tests.optim.setting import parameter, tensors, values


def test_a_plain_step_keeps_no_slots() -> None:
    w = parameter("w", 1.0)
    optimizer = SGD([w], 0.5)
    optimizer(tensors([1.0]))
    assert values(w) == [0.5]
    assert [variable.name for variable in optimizer.state_variables()] == ["global_step", "learning_rate"]


def test_the_default_rate_is_a_tenth() -> None:
    assert values(SGD([parameter("w", 1.0)]).learning_rate) == pytest.approx(0.1)


def test_the_first_gradient_is_not_dampened() -> None:
    w = parameter("w", 0.0)
    optimizer = SGD([w], 1.0, momentum=0.5, dampening=0.5)
    optimizer(tensors([1.0]))
    assert values(w) == [-1.0]
    optimizer(tensors([1.0]))
    assert values(w) == [-2.0]


def test_dampening_means_nothing_without_momentum() -> None:
    w = parameter("w", 0.0)
    optimizer = SGD([w], 1.0, dampening=0.5)
    optimizer(tensors([1.0]))
    optimizer(tensors([1.0]))
    assert values(w) == [-2.0]


@pytest.mark.parametrize("options", [{"nesterov": True}, {"nesterov": True, "momentum": 0.9, "dampening": 0.1}])
def test_looking_ahead_needs_momentum_and_no_dampening(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="nesterov needs a momentum above 0 and a dampening of 0"):
        SGD([parameter("w", 1.0)], 0.1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["momentum", "dampening", "weight_decay"])
def test_negative_numbers_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"SGD: {name} must be at least 0"):
        SGD([parameter("w", 1.0)], 0.1, **{name: -0.1})  # type: ignore[arg-type]


def test_a_weight_decay_that_changes_is_refused() -> None:
    with pytest.raises(TypeError, match="weight_decay must be a number"):
        SGD([parameter("w", 1.0)], 0.1, weight_decay=Cell())


def test_a_momentum_cannot_begin_later() -> None:
    w = parameter("w", 1.0)
    optimizer = SGD([w], 0.5)
    (optimizer.momentum,) = tensors([0.5])
    with pytest.raises(ValueError, match="momentum must be above 0 from the start to be changed later"):
        optimizer(tensors([1.0]))
    assert values(w) == [1.0]
