"""What an optimizer was made with is remembered."""

from __future__ import annotations

from typing import Any

import mixtrain.nn as nn
from mixtrain.optim.optimizer import opt_init_args_register
from tests.optim.setting import parameter


class Descent(nn.Optimizer):
    @opt_init_args_register
    def __init__(self, params: Any, learning_rate: Any, power: float = 1.0) -> None:
        super().__init__(learning_rate, params)
        self.power = power


def test_arguments_are_kept_by_name_with_defaults() -> None:
    w = parameter("w", 1.0)
    optimizer: Any = Descent([w], learning_rate=0.5)
    assert (optimizer.init_params, optimizer.init_learning_rate) == ({"params": [w]}, 0.5)
    assert (optimizer.init_args, optimizer.power) == ({"power": 1.0}, 1.0)


def test_a_schedule_is_not_kept_as_a_number() -> None:
    optimizer: Any = Descent([parameter("w", 1.0)], nn.WarmUpLR(0.1, 2))
    assert optimizer.init_learning_rate is None


def test_a_generator_of_parameters_is_kept_and_used() -> None:
    w = parameter("w", 1.0)
    optimizer: Any = Descent((item for item in [w]), 0.5)
    assert (optimizer.init_params["params"], list(optimizer.parameters)) == ([w], [w])
