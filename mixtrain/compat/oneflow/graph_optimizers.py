"""The optimizers of an `nn.Graph`, with the weights and learning rate of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.optim.optimizer import Optimizer
from mixtrain.optim.schedule import as_learning_rate
from mixtrain.step.optimizer_driver import OptimizerDriver, drive
from mixtrain.typing import Tensor, Variable


@dataclasses.dataclass
class Part:
    """One optimizer.

    Attributes:
        driver: The driver of the optimizer.
        schedule: Computes the learning rate from the step; None for the optimizer's own.
        parameters: The variables that the user passed, or None.
        weights: The variables that it trains, set by `assign_weights`.
    """

    driver: OptimizerDriver
    schedule: Cell | None
    parameters: list[Variable] | None
    weights: list[Variable] = dataclasses.field(default_factory=list)

    def apply(self, gradients: list[Tensor]) -> None:
        """Update the weights, with the learning rate of the schedule if there is one."""
        if self.schedule is not None:
            rate = keras.ops.reshape(self.schedule(self.driver.iterations), ())
            self.driver.optimizer.learning_rate.assign(rate)
        self.driver.apply(gradients, self.weights)


class GraphOptimizers:
    """The optimizers of a graph.

    `where`: The graph's class, for errors.

    Attributes:
        parts: One for each optimizer.
    """

    def __init__(self, where: str) -> None:
        self._where = f"{where}.add_optimizer"
        self.parts: list[Part] = []

    def add(self, optim: Optimizer, lr_sch: Any, parameters: Sequence[Variable] | None) -> None:
        """Add an optimizer; see `Graph.add_optimizer`."""
        driver, name = drive(optim), type(optim).__name__
        if driver.loss_scale != 1.0:
            raise checks.fail_value(
                self._where, "the graph divides by the loss scale, so the optimizer must not do it as well",
                f"loss_scale={driver.loss_scale:g}", f"{name}(...) without it, and self.set_grad_scaler(...)",
            )
        if parameters is not None and isinstance(optim, Optimizer):
            raise checks.fail_value(
                self._where, f"{name} holds its parameters itself", "parameters=...", f"{name}(parameters, ...)"
            )
        schedule = None if lr_sch is None else self._schedule(optim, lr_sch)
        self.parts.append(Part(driver, schedule, None if parameters is None else list(parameters)))

    def _schedule(self, optim: Optimizer, lr_sch: Any) -> Cell:
        schedule = as_learning_rate(self._where, lr_sch, "lr_sch")
        if not isinstance(schedule, Cell):
            raise checks.fail_type(
                self._where, "lr_sch must be a schedule or a list of rates", lr_sch, "lr_sch=nn.CosineDecayLR(...)"
            )
        if not isinstance(optim.learning_rate, keras.Variable):
            raise checks.fail_value(
                self._where, "with lr_sch the optimizer's own learning rate must be a number", optim.learning_rate,
                f"{type(optim).__name__} with a number for learning_rate, or no lr_sch",
            )
        return schedule

    def assign_weights(self, trained: Sequence[Tensor]) -> None:
        """Assign each optimizer the weights that it trains, and create its variables.

        Args:
            trained: The trainable variables of the graph's networks.

        Raises:
            ValueError: An optimizer has weights of no network of the graph, or two have the same.
        """
        known, assigned = {id(weight) for weight in trained}, set[int]()
        for part in self.parts:
            part.weights = part.driver.select(list(trained) if part.parameters is None else part.parameters)
            name = type(part.driver.optimizer).__name__
            foreign = [weight.name for weight in part.weights if id(weight) not in known]
            if foreign or not part.weights:
                raise checks.fail_value(
                    self._where, f"{name} must train weights of networks that the graph holds", foreign,
                    "self.network = network in __init__, and the optimizer with its trainable_params()",
                )
            shared = [weight.name for weight in part.weights if id(weight) in assigned]
            if shared:
                raise checks.fail_value(
                    self._where, "each weight must have one optimizer; several hold", shared,
                    "parameters=network.trainable_weights for a Keras optimizer, or fewer parameters for the other",
                )
            assigned |= {id(weight) for weight in part.weights}
            part.driver.build(part.weights)

    @property
    def weights(self) -> list[Variable]:
        """The weights of all optimizers, in order."""
        return [weight for part in self.parts for weight in part.weights]

    def state_variables(self) -> list[Variable]:
        """Return the variables of all optimizers."""
        return [variable for part in self.parts for variable in part.driver.state_variables()]

    def apply(self, gradients: list[Tensor]) -> None:
        """Update the weights of each optimizer; the gradients are in the order of `weights`."""
        start = 0
        for part in self.parts:
            part.apply(gradients[start : start + len(part.weights)])
            start += len(part.weights)
