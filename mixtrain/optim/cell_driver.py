"""The driver of `mixtrain.nn.Optimizer`, through which a train step updates its parameters."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import checks
from mixtrain.optim.optimizer import Optimizer
from mixtrain.step.optimizer_driver import ScaledByOthers, register_driver
from mixtrain.typing import Tensor, Variable


class CellDriver(ScaledByOthers):
    """Driver of a `mixtrain.nn.Optimizer`, which is created with its parameters."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def loss_scale(self) -> float:
        # A class that divides by a loss scale of its own has set the reciprocal alone, as MindCV's AdamW does.
        scale = float(self.optimizer.loss_scale)
        return 1 / float(getattr(self.optimizer, "reciprocal_scale", 1.0)) if scale == 1.0 else scale

    @property
    def divides_by_loss_scale(self) -> bool:
        return True

    @property
    def expected_loss_scale(self) -> float | None:
        return None

    @property
    def iterations(self) -> Tensor:
        return keras.ops.reshape(self.optimizer.global_step, ())

    @property
    def counter(self) -> keras.Variable:
        return self.optimizer._counter  # type: ignore[no-any-return]

    @property
    def learning_rate(self) -> Tensor | float | None:
        return self.optimizer._own_lr()

    def select(self, variables: Sequence[Variable]) -> list[Variable]:
        return [parameter for parameter in self.optimizer.parameters if parameter.trainable]

    def build(self, variables: Sequence[Variable]) -> None:
        known = {id(parameter) for parameter in self.optimizer.parameters}
        foreign = [variable.name for variable in variables if id(variable) not in known]
        if foreign:
            raise checks.fail_value(
                type(self.optimizer).__name__, "it must hold the variables it is to update", foreign,
                "the optimizer with network.trainable_params()",
            )

    def apply(self, gradients: Sequence[Tensor | None], variables: Sequence[Variable]) -> None:
        by_id = {id(variable): gradient for variable, gradient in zip(variables, gradients, strict=True)}
        self.optimizer(tuple(by_id.get(id(parameter)) for parameter in self.optimizer.parameters))

    def state_variables(self) -> list[Variable]:
        return list(self.optimizer.state_variables())

    def finish(self, variables: Sequence[Variable]) -> None:
        return None


register_driver(Optimizer, CellDriver)
