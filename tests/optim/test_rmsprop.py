"""RMSProp: what the reference numbers do not show."""

from __future__ import annotations

from typing import Any

import pytest

import mixtrain.nn as nn
from tests.optim.setting import parameter, tensors, values


def test_the_mean_square_starts_at_one_and_has_the_references_names() -> None:
    optimizer = nn.RMSProp([parameter("w", 1.0)], centered=True)
    assert [values(slot[0]) for slot in (optimizer.ms, optimizer.mg, optimizer.moment)] == [[1.0], [0.0], [0.0]]
    assert [slot[0].name for slot in (optimizer.ms, optimizer.mg, optimizer.moment)] == [
        "mean_square.w", "mean_grad.w", "moment.w",
    ]


def test_a_plain_one_keeps_no_mean_of_gradients() -> None:
    assert not hasattr(nn.RMSProp([parameter("w", 1.0)]), "mg")


def test_the_step_is_the_rate_where_the_mean_square_is_the_square() -> None:
    w = parameter("w", 1.0)
    nn.RMSProp([w], 0.25, decay=0.0)(tensors([-8.0]))
    assert values(w) == [1.25]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"decay": -0.1}, ValueError, "RMSProp: decay must be at least 0; got -0.1"),
        ({"momentum": "a"}, TypeError, "RMSProp: momentum must be a number"),
        ({"epsilon": 0.0}, ValueError, "RMSProp: epsilon must be greater than 0"),
        ({"centered": 1}, TypeError, "RMSProp: centered must be True or False"),
        ({"use_locking": None}, TypeError, "RMSProp: use_locking must be True or False"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        nn.RMSProp([parameter("w", 1.0)], **options)
