"""Functions of `GradScaler`: scaling and unscaling structures of tensors, and applying gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import float32
from mixtrain.loss_scale.rule import LARGEST_SCALE, SMALLEST_NORMAL, checked_scale
from mixtrain.loss_scale.scaling import scaled, unscaled, unscaled_gradients
from mixtrain.step.optimizer_driver import OptimizerDriver, drive
from mixtrain.typing import Optimizer, Tensor, TensorLike, Tree, Variable


def all_scaled(losses: Tree, loss_scale: Tensor) -> Tree:
    """Multiply a loss, or each loss of a structure, by the scale; None stays None."""
    return keras.tree.map_structure(
        lambda loss: None if loss is None else scaled(backend.to_tensor(loss), loss_scale), losses
    )


def all_unscaled(
    gradients: Sequence[Tensor], loss_scale: Tensor, variables: Sequence[Variable]
) -> tuple[list[Tensor], Tensor]:
    """Divide gradients by the scale; return them, and whether all of them are finite."""
    results = unscaled_gradients(gradients, variables, loss_scale)
    return results, backend.all_finite(results)


def are_next_values(gradients: Sequence[Tensor], optimizer: Optimizer) -> list[bool]:
    """Return which gradients are next values, as far as is known without their variables.

    That is by their marks, or by the variables of the optimizer, which a Keras optimizer has once it is built.
    """
    variables: Any = getattr(optimizer, "parameters", None) or getattr(optimizer, "_trainable_variables", ())
    if len(variables) != len(gradients):
        variables = [None] * len(gradients)
    return [
        backend.is_next_value(gradient) or backend.takes_next_value(variable)
        for gradient, variable in zip(gradients, variables, strict=True)
    ]


def unscaled_to_clip(
    gradients: Sequence[Tensor], loss_scale: Tensor, to_store: Sequence[bool]
) -> tuple[Any, Tensor]:
    """Divide gradients by the scale, with zeros in place of next values; return them, and whether all are finite."""
    results = [
        keras.ops.zeros_like(gradient) if is_stored and gradient is not None else unscaled(gradient, loss_scale)
        for gradient, is_stored in zip(gradients, to_store, strict=True)
    ]
    checked = [
        gradient if is_stored else result
        for gradient, result, is_stored in zip(gradients, results, to_store, strict=True)
    ]
    finite = backend.all_finite(checked)
    return (tuple(results) if isinstance(gradients, tuple) else results), finite


def scaled_driver(where: str, optimizer: Optimizer) -> OptimizerDriver:
    """Return the driver of an optimizer that gets its gradients from a scaler."""
    driver = drive(optimizer)
    if driver.loss_scale != 1.0:
        name = "loss_scale_factor" if isinstance(optimizer, keras.optimizers.Optimizer) else "loss_scale"
        raise checks.fail_value(
            where, "gradients must be unscaled once, by the scaler",
            f"an optimizer with {name}={driver.loss_scale:g}", f"{type(optimizer).__name__}(...) without {name}",
        )
    return driver


def check_gradients(where: str, gradients: Any) -> None:
    if not isinstance(gradients, (tuple, list)):
        raise checks.fail_type(where, "grads must be a tuple or list of gradients", gradients, "[gradient]")
    if all(gradient is None for gradient in gradients):
        raise checks.fail_value(
            where, "the loss must depend on some of the optimizer's variables", "no gradients but None",
            "a loss of the network that the optimizer trains, with the variables of that network",
        )


def variables_of(
    where: str, driver: OptimizerDriver, gradients: Sequence[Tensor], variables: Sequence[Variable] | None
) -> list[Variable]:
    """Return the variables of gradients: those passed, or the parameters of a mixtrain optimizer."""
    if variables is None:
        if isinstance(driver.optimizer, keras.optimizers.Optimizer):
            raise checks.fail_value(
                where, "variables must be given for a Keras optimizer", None,
                "scaler.step(optimizer, grads, model.trainable_variables)",
            )
        variables = driver.optimizer.parameters
    variables = list(variables)
    if len(variables) != len(gradients):
        raise checks.fail_value(
            where, f"there must be one gradient for each of the {len(variables)} variables",
            f"{len(gradients)} gradients", "gradients taken of these variables, in their order",
        )
    return variables


def apply(driver: OptimizerDriver, gradients: Sequence[Tensor], variables: Sequence[Variable]) -> None:
    """Apply gradients with an optimizer; a Keras optimizer gets only the variables that have a gradient."""
    if isinstance(driver.optimizer, keras.optimizers.Optimizer):
        pairs = [pair for pair in zip(gradients, variables, strict=True) if pair[0] is not None]
        gradients, variables = [gradient for gradient, _ in pairs], [variable for _, variable in pairs]
    driver.apply(gradients, variables)


def new_scale(where: str, value: TensorLike) -> Tensor:
    """Check a scale that a user sets; a traced scalar cannot be checked, and is clipped to the valid range."""
    if isinstance(value, (keras.Variable, *backend.TENSOR_TYPES)):
        value = keras.ops.reshape(keras.ops.cast(backend.to_tensor(value), float32), ())
        if backend.is_tracing():
            return keras.ops.clip(keras.ops.nan_to_num(value, nan=1.0), SMALLEST_NORMAL, LARGEST_SCALE)
        value = float(value)
    return checked_scale(where, "new_scale", value, example=2.0**16, minimum=SMALLEST_NORMAL)


def reading(variable: Variable, kind: type) -> Tensor:
    """Return the current value of a scalar: a Python number, or a tensor in a function being compiled."""
    value = backend.to_tensor(variable)
    return keras.ops.copy(value) if backend.is_tracing() else kind(value)
