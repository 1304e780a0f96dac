"""What a scaler does to losses and gradients, and how it hands gradients to an optimizer of either kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import float32
from mixtrain.loss_scale.arguments import checked_scale
from mixtrain.loss_scale.rule import LARGEST_SCALE, SMALLEST_NORMAL
from mixtrain.loss_scale.scaling import scaled, unscaled
from mixtrain.optim.adapter import OptimizerDriver, drive


def all_scaled(losses: Any, loss_scale: Any) -> Any:
    """Return a loss, or each of a structure of losses, multiplied by the scale; None stays None."""
    return keras.tree.map_structure(
        lambda loss: None if loss is None else scaled(backend.to_tensor(loss), loss_scale), losses
    )


def all_unscaled(gradients: Sequence[Any], loss_scale: Any) -> tuple[Any, Any]:
    """Return gradients divided by the scale, and whether the results are finite."""
    found = [unscaled(gradient, loss_scale) for gradient in gradients]
    return (tuple(found) if isinstance(gradients, tuple) else found), backend.all_finite(found)


def scaled_driver(where: str, optimizer: Any) -> OptimizerDriver:
    """Return the driver of an optimizer that a scaler may feed.

    Raises:
        TypeError: It is no optimizer.
        ValueError: It divides the gradients by a loss scale of its own.
    """
    driver = drive(optimizer)
    if driver.loss_scale != 1.0:
        name = "loss_scale_factor" if isinstance(optimizer, keras.optimizers.Optimizer) else "loss_scale"
        raise checks.fail_value(
            where, "gradients must be unscaled once, by the scaler",
            f"an optimizer with {name}={driver.loss_scale:g}", f"{type(optimizer).__name__}(...) without {name}",
        )
    return driver


def check_gradients(where: str, gradients: Any) -> None:
    """Check that these are gradients, and that there are any.

    Raises:
        TypeError: They are no tuple or list.
        ValueError: All are None.
    """
    if not isinstance(gradients, (tuple, list)):
        raise checks.fail_type(where, "grads must be a tuple or list of gradients", gradients, "[gradient]")
    if all(gradient is None for gradient in gradients):
        raise checks.fail_value(
            where, "the loss must depend on some of the optimizer's variables", "no gradients but None",
            "a loss of the network that the optimizer trains, with the variables of that network",
        )


def variables_of(where: str, driver: OptimizerDriver, gradients: Sequence[Any], variables: Any) -> list[Any]:
    """Return the variables that gradients belong to.

    Raises:
        ValueError: There is not one for each gradient, or a Keras optimizer's are left out.
    """
    if variables is None:
        if isinstance(driver.optimizer, keras.optimizers.Optimizer):
            raise checks.fail_value(
                where, "variables must be given for a Keras optimizer", None,
                "scaler.step(optimizer, grads, model.trainable_variables)",
            )
        variables = driver.optimizer.parameters
    found = list(variables)
    if len(found) != len(gradients):
        raise checks.fail_value(
            where, f"there must be one gradient for each of the {len(found)} variables", f"{len(gradients)} gradients",
            "gradients taken of these variables, in their order",
        )
    return found


def apply(driver: OptimizerDriver, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
    """Hand gradients to an optimizer; one of Keras's does not see the variables without a gradient."""
    if isinstance(driver.optimizer, keras.optimizers.Optimizer):
        rows = [row for row in zip(gradients, variables, strict=True) if row[0] is not None]
        gradients, variables = [gradient for gradient, _ in rows], [variable for _, variable in rows]
    driver.apply(gradients, variables)


def new_scale(where: str, value: Any) -> Any:
    """Return a scale that a user sets: checked where its value is known, kept in range in a function being compiled.

    Raises:
        TypeError: It is neither a number nor a scalar.
        ValueError: It is not positive and finite, or no scalar.
    """
    if isinstance(value, (keras.Variable, *backend.TENSOR_TYPES)):
        value = keras.ops.reshape(keras.ops.cast(backend.to_tensor(value), float32), ())
        if backend.is_tracing():
            return keras.ops.clip(keras.ops.nan_to_num(value, nan=1.0), SMALLEST_NORMAL, LARGEST_SCALE)
        value = float(value)
    return checked_scale(where, "new_scale", value, example=2.0**16, minimum=SMALLEST_NORMAL)


def reading(variable: Any, kind: type) -> Any:
    """Return the present value of a scalar: a Python number, or a tensor in a function being compiled."""
    value = backend.to_tensor(variable)
    return keras.ops.copy(value) if backend.is_tracing() else kind(value)
