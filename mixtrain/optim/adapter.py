"""One way to drive an optimizer from a train step, be it mixtrain's or Keras's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import keras

from mixtrain import checks
from mixtrain.optim.optimizer import Optimizer


class OptimizerDriver(Protocol):
    """What a train step asks of an optimizer.

    Attributes:
        optimizer: The optimizer itself.
        loss_scale: What it divides the gradients by on its own.
        divides_by_loss_scale: Whether it divides at all, so that a step must not; a Keras optimizer does only with a
            ``loss_scale_factor``.
        own_scale: What the optimizer wants the loss multiplied by where nobody else scales it (Keras's
            ``loss_scale_factor``); None for nothing.
        iterations: Updates applied so far, a scalar int tensor.
        counter: The variable that counts them, or with Keras's gradient accumulation the batches.
        learning_rate: The rate of the coming update, a scalar tensor or number; of groups the optimizer's own; None for
            an optimizer that has none.
    """

    optimizer: Any

    @property
    def loss_scale(self) -> float: ...

    @property
    def divides_by_loss_scale(self) -> bool: ...

    @property
    def own_scale(self) -> float | None: ...

    @property
    def iterations(self) -> Any: ...

    @property
    def counter(self) -> keras.Variable: ...

    @property
    def learning_rate(self) -> Any: ...

    def select(self, variables: Sequence[Any]) -> list[Any]:
        """Return the variables to differentiate by, given the trainable ones of the network."""
        ...

    def build(self, variables: Sequence[Any]) -> None:
        """Create the optimizer's variables; call it before compiling, with the variables of `apply`."""
        ...

    def apply(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        """Update the variables in place; a gradient may be None or sparse."""
        ...

    def state_variables(self) -> list[Any]:
        """Return every variable of the optimizer's own."""
        ...

    def finish(self, variables: Sequence[Any]) -> None:
        """Do what the optimizer does once at the end of training (Keras's moving averages become the weights)."""
        ...


def drive(optimizer: Any) -> OptimizerDriver:
    """Return the driver of an optimizer.

    Args:
        optimizer: A `mixtrain.nn.Optimizer` or a `keras.optimizers.Optimizer`.

    Raises:
        TypeError: It is neither.
        ValueError: It is a `keras.optimizers.LossScaleOptimizer`.

    Example:
        >>> import keras
        >>> drive(keras.optimizers.SGD(0.1)).loss_scale
        1.0
    """
    if isinstance(optimizer, Optimizer):
        return _CellDriver(optimizer)
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        inner = type(optimizer.inner_optimizer).__name__
        raise checks.fail_value(
            "optimizer", "mixtrain scales the loss itself, so the optimizer must not do it as well",
            type(optimizer).__name__, f"optimizer=keras.optimizers.{inner}(...), and loss_scale_manager=... beside it",
        )
    checks.instance(
        "optimizer", "it", optimizer, (Optimizer, keras.optimizers.Optimizer),
        "optimizer=nn.Momentum(network.trainable_params(), 0.01, 0.9) or keras.optimizers.SGD(0.01)",
    )
    return _KerasDriver(optimizer)


class _CellDriver:
    """Drives a `mixtrain.nn.Optimizer`, which knows its parameters."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def loss_scale(self) -> float:
        return float(self.optimizer.loss_scale)

    @property
    def divides_by_loss_scale(self) -> bool:
        return True

    @property
    def own_scale(self) -> float | None:
        return None

    @property
    def iterations(self) -> Any:
        return keras.ops.reshape(self.optimizer.global_step, ())

    @property
    def counter(self) -> keras.Variable:
        return self.optimizer._counter  # type: ignore[no-any-return]

    @property
    def learning_rate(self) -> Any:
        return self.optimizer._own_lr()

    def select(self, variables: Sequence[Any]) -> list[Any]:
        return [parameter for parameter in self.optimizer.parameters if parameter.trainable]

    def build(self, variables: Sequence[Any]) -> None:
        known = {id(parameter) for parameter in self.optimizer.parameters}
        foreign = [variable.name for variable in variables if id(variable) not in known]
        if foreign:
            raise checks.fail_value(
                type(self.optimizer).__name__, "it must hold the variables it is to update", foreign,
                "the optimizer with network.trainable_params()",
            )

    def apply(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        given = {id(variable): gradient for variable, gradient in zip(variables, gradients, strict=True)}
        self.optimizer(tuple(given.get(id(parameter)) for parameter in self.optimizer.parameters))

    def state_variables(self) -> list[Any]:
        return list(self.optimizer.state_variables())

    def finish(self, variables: Sequence[Any]) -> None:
        return None


class _KerasDriver:
    """Drives a `keras.optimizers.Optimizer`, which is told its variables."""

    def __init__(self, optimizer: keras.optimizers.Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def loss_scale(self) -> float:
        return float(self.optimizer.loss_scale_factor or 1.0)

    @property
    def divides_by_loss_scale(self) -> bool:
        return self.optimizer.loss_scale_factor is not None

    @property
    def own_scale(self) -> float | None:
        return self.loss_scale if self.divides_by_loss_scale else None

    @property
    def iterations(self) -> Any:
        return keras.ops.convert_to_tensor(self.optimizer.iterations)

    @property
    def counter(self) -> keras.Variable:
        counter = self.optimizer.iterations
        if isinstance(counter, keras.Variable):
            return counter
        # With gradient_accumulation_steps `iterations` is computed from the count of batches, the first variable.
        return self.optimizer.variables[0]  # type: ignore[no-any-return]

    @property
    def learning_rate(self) -> Any:
        return getattr(self.optimizer, "learning_rate", None)  # Keras's MultiOptimizer refuses it.

    def select(self, variables: Sequence[Any]) -> list[Any]:
        return [variable for variable in variables if variable.trainable]

    def build(self, variables: Sequence[Any]) -> None:
        if not self.optimizer.built:
            self.optimizer.build(list(variables))

    def apply(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        self.optimizer.apply(list(gradients), list(variables))

    def state_variables(self) -> list[Any]:
        return list(self.optimizer.variables)

    def finish(self, variables: Sequence[Any]) -> None:
        self.optimizer.finalize_variable_values(list(variables))
