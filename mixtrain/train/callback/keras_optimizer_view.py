"""The ``self.model.optimizer`` of Keras callbacks for an optimizer of mixtrain."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks
from mixtrain.typing import Optimizer, Variable


class OptimizerView:
    """A mixtrain optimizer with the interface of a Keras optimizer: its rate is read and set as an attribute.

    `name`: The optimizer's class.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.built = True
        self.name = type(optimizer).__name__

    @property
    def learning_rate(self) -> Any:
        """The variable of the learning rate, or the value of a schedule for the next step."""
        rate = self.optimizer.learning_rate
        return rate if isinstance(rate, keras.Variable) else self.optimizer.get_lr()

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        rate = self.optimizer.learning_rate
        if not isinstance(rate, keras.Variable):
            raise checks.fail_type(
                self.name, "a callback can set the rate only where it is a number", rate, "learning_rate=0.1"
            )
        rate.assign(value)

    @property
    def iterations(self) -> Any:
        """The number of applied steps, a scalar int tensor."""
        return keras.ops.reshape(self.optimizer.global_step, ())

    @property
    def variables(self) -> list[Variable]:
        """The optimizer's own variables."""
        return list(self.optimizer.state_variables())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["optimizer"], name)
