"""`Rprop`: resilient backpropagation, with step sizes adapted by the signs of the gradients."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks
from mixtrain.optim.optimizer import LearningRateLike, Optimizer, ParamsLike, WeightDecayLike
from mixtrain.typing import Tensor


class Rprop(Optimizer):
    """Resilient backpropagation: ``w = w - sign(g) * step_size``, with a step size per element.

    A step size is multiplied by the second of `etas` where the sign of the gradient is unchanged. Where the sign flips,
    it is multiplied by the first, and the element is not updated in that step.

    Args:
        params, weight_decay: As in `Optimizer`.
        learning_rate: Initial step size; a number, list or schedule, see `Optimizer`.
        etas: Factors of the step sizes: one between 0 and 1, and one above 1.
        step_sizes: Minimum and maximum step size.

    Example:
        >>> import mixtrain, mixtrain.nn as nn, numpy as np
        >>> w = mixtrain.Parameter(np.zeros(2, np.float32), name="w")
        >>> done = nn.Rprop([w], learning_rate=0.5)((mixtrain.Tensor([3.0, -0.1]),))
        >>> w.asnumpy().tolist()
        [-0.5, 0.5]

    Source: Riedmiller and Braun, 1993; MindSpore, `mindspore.nn.Rprop`.
    """

    def __init__(
        self, params: ParamsLike, learning_rate: LearningRateLike = 0.1, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0), weight_decay: WeightDecayLike = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.etas = _pair("etas", etas, (0.5, 1.2))
        if not 0.0 < self.etas[0] < 1.0 < self.etas[1]:
            raise checks.fail_value("Rprop", "etas must be below and above 1", etas, "etas=(0.5, 1.2)")
        self.step_sizes_range = _pair("step_sizes", step_sizes, (1e-6, 50.0))
        if self.step_sizes_range[0] > self.step_sizes_range[1]:
            raise checks.fail_value(
                "Rprop", "step_sizes must be the smallest and the greatest", step_sizes, "step_sizes=(1e-6, 50.0)"
            )
        self.prev = self.parameters.clone("prev", "zeros")
        self.step_size = self.parameters.clone("step_size", "zeros")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        return weight - resilient_step(self, index, gradient, rate, self.etas, self.step_sizes_range)


def resilient_step(
    cell: Any, index: int, gradient: Tensor, rate: Tensor, etas: tuple[float, float], limits: tuple[float, float]
) -> Tensor:
    """Return what an optimizer subtracts from a weight, and update its slots `prev` and `step_size`."""
    # 1 where the sign of the gradient is unchanged, -1 where it flipped, 0 where either gradient is zero.
    agreement = keras.ops.sign(gradient * cell.prev[index].value)
    step_size = keras.ops.where(cell.global_step.value[0] == 0, rate, cell.step_size[index].value)
    shrink, grow = etas
    factor = keras.ops.where(agreement > 0, grow, keras.ops.where(agreement < 0, shrink, 1.0))
    step_size = keras.ops.clip(step_size * factor, *limits)
    # After a change of sign the weight stays, and the next step neither grows nor shrinks.
    gradient = keras.ops.where(agreement < 0, keras.ops.zeros_like(gradient), gradient)
    cell.prev[index].assign(gradient)
    cell.step_size[index].assign(step_size)
    return keras.ops.sign(gradient) * step_size


def _pair(name: str, value: Any, example: tuple[float, float]) -> tuple[float, float]:
    """Check that `value` is a pair of numbers, and return it."""
    if not isinstance(value, tuple):
        raise checks.fail_type("Rprop", f"{name} must be a tuple", value, f"{name}={example}")
    if len(value) != 2:
        raise checks.fail_value("Rprop", f"{name} must be two numbers", value, f"{name}={example}")
    first, second = (checks.number("Rprop", name, item, example=example[0]) for item in value)
    return first, second
