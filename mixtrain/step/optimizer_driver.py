"""One interface through which a train step drives optimizers of any library, and the driver of Keras's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import keras

from mixtrain import backend, checks
from mixtrain.network.keras_own import keras_owns
from mixtrain.typing import Optimizer, Tensor, Variable


class OptimizerDriver(Protocol):
    """Interface of an optimizer to a train step.

    Attributes:
        optimizer: The optimizer itself.
        loss_scale: Loss scale that the optimizer itself divides the gradients by.
        divides_by_loss_scale: Whether the optimizer divides by it, so that the step must not; a Keras optimizer does
            only with a ``loss_scale_factor``.
        expected_loss_scale: Factor by which the optimizer expects the loss to be multiplied if nothing else scales it
            (Keras's ``loss_scale_factor``); None if it expects none.
        iterations: Updates applied so far, a scalar int tensor.
        counter: The variable that counts the updates, or the batches with Keras's gradient accumulation.
        own_scaler: The `LossScaleState` of a scaler that the optimizer brings; None if it brings none.
        chosen_scaling: Whether whoever made the optimizer has decided how the loss is scaled.
        learning_rate: Rate of the next update, a scalar tensor or number. With parameter groups it is the optimizer's
            default rate. None for an optimizer that has no single rate.
    """

    optimizer: Optimizer

    @property
    def loss_scale(self) -> float: ...

    @property
    def divides_by_loss_scale(self) -> bool: ...

    @property
    def expected_loss_scale(self) -> float | None: ...

    @property
    def iterations(self) -> Tensor: ...

    @property
    def counter(self) -> keras.Variable: ...

    @property
    def own_scaler(self) -> Any: ...

    @property
    def chosen_scaling(self) -> bool: ...

    @property
    def learning_rate(self) -> Tensor | float | None: ...

    def select(self, variables: Sequence[Variable]) -> list[Variable]:
        """Return the variables to differentiate with respect to, given the trainable ones of the network."""

    def build(self, variables: Sequence[Variable]) -> None:
        """Create the optimizer's variables. Call it before compiling, with the variables of `apply`."""

    def apply(self, gradients: Sequence[Tensor | None], variables: Sequence[Variable]) -> None:
        """Update the variables in place; a gradient may be None or sparse."""

    def state_variables(self) -> list[Variable]:
        """Return the variables that belong to the optimizer."""

    def claim_scaler(self) -> None:
        """Record that a train step scales the loss by `own_scaler`; nothing else may from then on."""

    def finish(self, variables: Sequence[Variable]) -> None:
        """Run the optimizer's end-of-training step (Keras overwrites the weights with their moving averages)."""


class ScaledByOthers:
    """The part of the driver of an optimizer without a scaler."""

    own_scaler: Any = None
    chosen_scaling: bool = False

    def claim_scaler(self) -> None:
        """Do nothing: there is none."""


# The driver of each kind of optimizer, by its class; a library with optimizers of its own adds a row.
_DRIVERS: dict[type, Callable[[Any], OptimizerDriver]] = {}


def register_driver(kind: type, driver: Callable[[Any], OptimizerDriver]) -> None:
    """Set the driver of the optimizers of a class and its subclasses."""
    _DRIVERS[kind] = driver


def drive(optimizer: Any) -> OptimizerDriver:
    """Return the driver of an optimizer. `optimizer`: a `mixtrain.nn.Optimizer` or a `keras.optimizers.Optimizer`.

    Raises: ValueError: `optimizer` is a `keras.optimizers.LossScaleOptimizer`.

    Example:
        >>> import keras
        >>> drive(keras.optimizers.SGD(0.1)).loss_scale
        1.0
    """
    for base in type(optimizer).__mro__:
        if base in _DRIVERS:
            return _DRIVERS[base](optimizer)
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        inner = type(optimizer.inner_optimizer).__name__
        raise checks.fail_value(
            "optimizer", "mixtrain scales the loss itself, so the optimizer must not do it as well",
            type(optimizer).__name__, f"optimizer=keras.optimizers.{inner}(...), and loss_scale_manager=... beside it",
        )
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise checks.fail_type(
            "optimizer", "it must be an optimizer of mixtrain or Keras", optimizer,
            "optimizer=nn.Momentum(network.trainable_params(), 0.01, 0.9) or keras.optimizers.SGD(0.01)",
        )
    return _KerasDriver(optimizer)


def named_optimizer(name: str) -> Optimizer:
    """Return Keras's optimizer of a name. Raises: ValueError if there is none; the error offers the nearest name."""
    try:
        return keras.optimizers.get(name)
    except ValueError:
        names = [item.lower() for item in vars(keras.optimizers) if item[0].isupper()]
        (near,) = checks.nearest(name, names)
        raise checks.fail_value(
            "Model", "optimizer must be the name of one of Keras's optimizers", name, f'optimizer="{near}"'
        ) from None


def apply_gradients(
    optimizer: keras.optimizers.Optimizer, gradients: Sequence[Tensor | None], variables: Sequence[Variable]
) -> None:
    """Update variables by a Keras optimizer, which may override `apply_gradients`, `apply` or what that calls."""
    # Keras's own `fit` calls it on TensorFlow, and it calls `apply`; on JAX Keras never calls it.
    if variables:
        if not keras_owns(optimizer.apply_gradients):
            # In a branch of a graph, tensors of the branch: TensorFlow's `all_reduce`, which Keras calls, refuses
            # gradients that the user computed there beside ones of the graph around it.
            gradients = [keras.ops.copy(value) if backend.is_tensor(value) else value for value in gradients]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))


def check_averages(optimizer: keras.optimizers.Optimizer, variables: Sequence[Variable]) -> None:
    """Check that a Keras optimizer need not average variables that take next values.

    Raises: ValueError: It does: Keras (3.15) fails when it writes the averages back, as these variables have none.
    """
    if getattr(optimizer, "use_ema", False) and any(map(backend.takes_next_value, variables)):
        raise checks.fail_value(
            type(optimizer).__name__, "with float8 layers it must not average weights: their scales have no averages",
            "use_ema=True", "use_ema=False",
        )


class _KerasDriver(ScaledByOthers):
    """Driver of a `keras.optimizers.Optimizer`, which receives its variables from the step."""

    def __init__(self, optimizer: keras.optimizers.Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def loss_scale(self) -> float:
        return float(self.optimizer.loss_scale_factor or 1.0)

    @property
    def divides_by_loss_scale(self) -> bool:
        return self.optimizer.loss_scale_factor is not None

    @property
    def expected_loss_scale(self) -> float | None:
        return self.loss_scale if self.divides_by_loss_scale else None

    @property
    def iterations(self) -> Tensor:
        return keras.ops.convert_to_tensor(self.optimizer.iterations)

    @property
    def counter(self) -> keras.Variable:
        counter = self.optimizer.iterations
        if isinstance(counter, keras.Variable):
            return counter
        # With gradient_accumulation_steps, Keras computes `iterations` from the batch count, its first variable.
        return self.optimizer.variables[0]  # type: ignore[no-any-return]

    @property
    def learning_rate(self) -> Tensor | float | None:
        return getattr(self.optimizer, "learning_rate", None)  # Keras's MultiOptimizer raises AttributeError.

    def select(self, variables: Sequence[Variable]) -> list[Variable]:
        return [variable for variable in variables if variable.trainable]

    def build(self, variables: Sequence[Variable]) -> None:
        check_averages(self.optimizer, variables)
        if not self.optimizer.built:
            self.optimizer.build(list(variables))

    def apply(self, gradients: Sequence[Tensor | None], variables: Sequence[Variable]) -> None:
        apply_gradients(self.optimizer, gradients, variables)

    def state_variables(self) -> list[Variable]:
        return list(self.optimizer.variables)

    def finish(self, variables: Sequence[Variable]) -> None:
        self.optimizer.finalize_variable_values(list(variables))
