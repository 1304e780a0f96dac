"""Learning rates of every step as a list: the reference's numbers, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mixtrain.nn as nn
from tests.nn.reference import case

# To call with what the types forbid.
loose: Any = nn

ARGUMENTS: dict[str, dict[str, tuple[Any, ...]]] = {
    "piecewise_constant_lr": {"plain": ([2, 5, 10], [0.1, 0.05, 0.01])},
    "exponential_decay_lr": {"plain": (0.1, 0.9, 12, 2, 3), "stair": (0.1, 0.9, 12, 2, 3, True)},
    "natural_exp_decay_lr": {"plain": (0.1, 0.9, 12, 2, 3), "stair": (0.1, 0.9, 12, 2, 2, True)},
    "inverse_decay_lr": {"plain": (0.1, 0.5, 12, 2, 3), "stair": (0.1, 0.5, 12, 2, 3, True)},
    "cosine_decay_lr": {"plain": (0.01, 0.1, 12, 2, 4)},
    "polynomial_decay_lr": {
        "plain": (0.1, 0.01, 12, 2, 3, 0.5),
        "square": (0.1, 0.01, 12, 1, 5, 2.0),
        "again": (0.1, 0.01, 12, 2, 2, 0.5, True),
    },
    "warmup_lr": {"plain": (0.1, 12, 2, 3)},
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_lists_are_the_references_to_the_last_digit(name: str) -> None:
    expected = case(f"list_{name}", "optim_reference")
    assert set(expected) == set(ARGUMENTS[name])
    for setting, arguments in ARGUMENTS[name].items():
        rates = getattr(nn, name)(*arguments)
        assert rates == pytest.approx(expected[setting].tolist(), rel=1e-15)
        assert all(type(rate) is float for rate in rates)


def test_keywords_are_the_references() -> None:
    rates = nn.cosine_decay_lr(min_lr=0.0, max_lr=0.1, total_step=2, step_per_epoch=1, decay_epoch=2)
    assert rates == pytest.approx([0.1, 0.05])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: loose.cosine_decay_lr(0.1, 0.1, 4, 2, 2), ValueError,
            "cosine_decay_lr: max_lr must be greater than 0.1",
        ),
        (lambda: loose.cosine_decay_lr(0.0, 0.1, 0, 2, 2), ValueError, "total_step must be at least 1; got 0"),
        (lambda: loose.cosine_decay_lr(0.0, 0.1, 4, 2, 2.0), TypeError, "decay_epoch must be an int; got float 2.0"),
        (lambda: loose.warmup_lr(-0.1, 4, 2, 2), ValueError, "warmup_lr: learning_rate must be at least 0"),
        (lambda: loose.exponential_decay_lr(0.1, 0.0, 4, 2, 2), ValueError, "decay_rate must be greater than 0"),
        (lambda: loose.inverse_decay_lr(0.1, 0.5, 4, 2, 2, 1), TypeError, "is_stair must be True or False"),
        (lambda: loose.polynomial_decay_lr(0.1, 0.0, 4, 2, 2, 0.0), ValueError, "power must be greater than 0"),
        (lambda: loose.piecewise_constant_lr([2, 3], [0.1]), ValueError, "one learning rate for each milestone"),
        (
            lambda: loose.piecewise_constant_lr([3, 2], [0.1, 0.2]), ValueError,
            r"milestone\[1\] must be at least 3; got 2",
        ),
        (lambda: loose.piecewise_constant_lr(3, [0.1]), TypeError, "milestone must be a tuple or list"),
    ],
)
def test_bad_arguments_are_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
