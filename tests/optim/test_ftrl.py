"""FTRL: the L1 penalty, decay of every name, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import mixtrain.nn as nn
from tests.optim.setting import parameter, tensors, values


def test_the_l1_penalty_pulls_weights_to_zero_and_keeps_small_ones_there() -> None:
    w = parameter("w", 0.0, 0.0)
    nn.FTRL([w], initial_accum=0.0, learning_rate=1.0, l1=1.0)(tensors([2.0, 0.5]))
    # z = (2, 0.5), sqrt(n) = (2, 0.5): (sign(z) * l1 - z) / sqrt(n) where |z| > l1.
    assert values(w) == [-0.5, 0.0]


def test_decay_spares_no_name_outside_groups() -> None:
    optimizer = nn.FTRL([parameter("bn.gamma", 1.0), parameter("fc.weight", 1.0)], weight_decay=0.5)
    assert optimizer.decay_flags == (True, True)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"learning_rate": [0.1, 0.2]}, ValueError, "FTRL: learning_rate must be one number"),
        ({"learning_rate": 0.0}, ValueError, "FTRL: learning_rate must be greater than 0"),
        ({"lr_power": 0.5}, ValueError, "FTRL: lr_power must be at most 0; got 0.5"),
        ({"l1": -1.0}, ValueError, "FTRL: l1 must be at least 0"),
        ({"initial_accum": "a"}, TypeError, "FTRL: initial_accum must be a number"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        nn.FTRL([parameter("w", 1.0)], **options)


def test_a_rate_of_a_group_is_refused() -> None:
    with pytest.raises(ValueError, match="FTRL: learning_rate must be one number"):
        nn.FTRL([{"params": [parameter("w", 1.0)], "lr": 0.1}])
