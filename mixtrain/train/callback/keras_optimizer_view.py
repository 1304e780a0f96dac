"""What a Keras callback gets as ``self.model.optimizer`` where the optimizer is one of mixtrain's."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks


class OptimizerView:
    """A mixtrain optimizer as Keras callbacks expect one: its rate is read and set as an attribute.

    Args:
        optimizer: The optimizer.

    Attributes:
        built: True.
        name: The optimizer's class.
    """

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self.built = True
        self.name = type(optimizer).__name__

    @property
    def learning_rate(self) -> Any:
        """The learning rate: the variable that holds it, or a schedule's value for the coming step."""
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
        """The steps that were applied, a scalar int tensor."""
        return keras.ops.reshape(self.optimizer.global_step, ())

    @property
    def variables(self) -> list[Any]:
        """The optimizer's own variables."""
        return list(self.optimizer.state_variables())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["optimizer"], name)
