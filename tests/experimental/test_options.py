"""Tests that options of optimizers with `param_groups` are refused as MindSpore refuses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain.experimental import optim


def _parameters() -> list[mixtrain.Parameter]:
    return [mixtrain.Parameter(np.ones(2, np.float32), name="w")]


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("Adam", {"betas": 0.9}, TypeError, "Adam: betas must be a tuple of numbers"),
        ("AdamW", {"betas": (0.9, 1.5)}, ValueError, r"AdamW: betas\[1\] must be"),
        ("NAdam", {"eps": 0.0}, ValueError, "NAdam: eps must be"),
        ("RAdam", {"weight_decay": -1.0}, ValueError, "RAdam: weight_decay must be at least 0"),
        ("Rprop", {"etas": (1.2, 0.5)}, ValueError, "Rprop: etas must be a number below 1 and one above"),
        ("Adadelta", {"rho": 1.5}, ValueError, "Adadelta: rho must be"),
        ("RMSprop", {"alpha": "half"}, TypeError, "RMSprop: alpha must be"),
        ("SGD", {"lr": 0.1, "nesterov": True}, ValueError, "SGD: nesterov needs a momentum, and no dampening"),
        ("SGD", {"lr": 0.1, "maximize": 1}, TypeError, "SGD: maximize must be True or False"),
    ],
)
def test_an_option_out_of_range_is_refused(
    name: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        getattr(optim, name)(_parameters(), **options)


def test_the_options_of_each_group_are_checked_and_those_of_scripts_own_optimizers_are_theirs() -> None:
    with pytest.raises(ValueError, match="SGD: momentum must be at least 0"):
        optim.SGD([{"params": _parameters(), "momentum": -0.5}], lr=0.1)

    class Own(optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 0.1, "betas": "wide"})

    assert Own(_parameters()).param_groups[0]["betas"] == "wide"
    assert optim.Adam(_parameters(), eps=0).param_groups[0]["eps"] == 0
