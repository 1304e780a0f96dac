"""AdaFactor, AdaMax, Adadelta, ASGD, ProximalAdagrad and Rprop: what is refused, and slots in float16."""

from __future__ import annotations

from typing import Any

import pytest

import mixtrain
import mixtrain.nn as nn
from tests.optim.setting import parameter, tensors, values


@pytest.mark.parametrize(
    ("kind", "options", "error", "message"),
    [
        (nn.AdaFactor, {"learning_rate": 0.1}, ValueError, "AdaFactor: exactly one of learning_rate and relative_step"),
        (nn.AdaFactor, {"relative_step": False}, ValueError, "AdaFactor: exactly one of learning_rate and relative_st"),
        (nn.AdaFactor, {"learning_rate": 0.1, "relative_step": False, "warmup_init": True}, ValueError, "warmup_init"),
        (nn.AdaFactor, {"eps": 1e-3}, ValueError, "AdaFactor: eps must be two numbers"),
        (nn.AdaFactor, {"decay_rate": 1.0}, ValueError, "AdaFactor: decay_rate must be less than 1"),
        (nn.AdaMax, {"beta1": 1.0}, ValueError, "AdaMax: beta1 must be less than 1"),
        (nn.Adadelta, {"rho": 1.5}, ValueError, "Adadelta: rho must be at most 1"),
        (nn.ASGD, {"t0": "a"}, TypeError, "ASGD: t0 must be a number"),
        (nn.ProximalAdagrad, {"l1": -1.0}, ValueError, "ProximalAdagrad: l1 must be at least 0"),
        (nn.Rprop, {"etas": 0.5}, TypeError, "Rprop: etas must be a tuple"),
        (nn.Rprop, {"etas": (0.5, 0.9)}, ValueError, "Rprop: etas must be below and above 1"),
        (nn.Rprop, {"step_sizes": (1.0,)}, ValueError, "Rprop: step_sizes must be two numbers"),
        (nn.Rprop, {"step_sizes": (2.0, 1.0)}, ValueError, "Rprop: step_sizes must be the smallest and the greatest"),
    ],
)
def test_bad_arguments_are_refused(
    kind: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        kind([parameter("w", 1.0)], **options)


def test_compressed_mean_squares_of_vectors_are_float16() -> None:
    w = parameter("w", 1.0, 2.0)
    optimizer = nn.AdaFactor([w], compression=True, beta1=None, scale_parameter=False)
    optimizer(tensors([2.0, -2.0]))
    assert optimizer.exp_avg_sq[0].dtype == mixtrain.float16
    assert values(w) == pytest.approx([0.99, 2.01])
