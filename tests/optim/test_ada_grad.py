"""Adagrad: the start of its sum, and a sum that stays."""

from __future__ import annotations

from typing import Any

import pytest

import mixtrain.nn as nn
from tests.optim.setting import parameter, tensors, values

# To call with what the types forbid.
loose: Any = nn


def test_the_sum_starts_where_it_is_told_to() -> None:
    optimizer = nn.Adagrad([parameter("w", 1.0)], accum=0.25)
    assert (optimizer.accum[0].name, values(optimizer.accum[0])) == ("accum.w", [0.25])


def test_without_update_slots_the_sum_stays() -> None:
    w = parameter("w", 1.0)
    optimizer = nn.Adagrad([w], accum=0.25, learning_rate=0.5, update_slots=False)
    optimizer(tensors([1.0]))
    assert (values(w), values(optimizer.accum[0])) == ([0.0], [0.25])


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="Adagrad: accum must be at least 0; got -1.0"):
        nn.Adagrad([parameter("w", 1.0)], accum=-1.0)
    with pytest.raises(TypeError, match="Adagrad: update_slots must be True or False"):
        loose.Adagrad([parameter("w", 1.0)], update_slots=1)
