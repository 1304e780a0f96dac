"""`grad` and `value_and_grad`: the gradient of a function as a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import checks
from mixtrain.ops.gradient import (
    check_function,
    differentiate,
    is_int,
    like_weights,
    split_sens,
    tensor_positions,
    weights_of,
)
from mixtrain.typing import Tensor, Tree


def value_and_grad(
    fn: Callable[..., Any], grad_position: int | tuple[int, ...] | None = 0, weights: Any = None, has_aux: bool = False,
    return_ids: bool = False, sens_param: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the outputs of `fn` and their gradients.

    Args:
        fn: A Cell or a function of tensors; several outputs are differentiated together.
        grad_position: The input, or a tuple of inputs, to differentiate with respect to; None for none. Inputs by
            keyword follow those by position, in the order of the call.
        weights: A Parameter or a list of them to differentiate with respect to; None for none.
        has_aux: Whether only the first output of `fn` is differentiated; there must be others.
        return_ids: Whether each gradient comes as ``(position, gradient)`` or ``(name of the weight, gradient)``.
        sens_param: Whether calls end with one more argument, the gradient of the output.

    Returns:
        A function that returns ``(outputs, gradients)``. `gradients` are those of the inputs, one for one position
        and a tuple for more; those of the weights, one for one Parameter and a tuple for a list; or a tuple of both.

    Example:
        >>> import mixtrain
        >>> x, y = mixtrain.Tensor(3.0), mixtrain.Tensor(4.0)
        >>> value, (dx, dy) = mixtrain.value_and_grad(lambda x, y: x * x * y, (0, 1))(x, y)
        >>> float(value), float(dx), float(dy)
        (36.0, 24.0, 9.0)
    """
    return _gradient_function(
        "value_and_grad", fn, grad_position, weights, has_aux, return_ids, sens_param,
        lambda outputs, gradients: (outputs, gradients),
    )


def grad(
    fn: Callable[..., Any], grad_position: int | tuple[int, ...] | None = 0, weights: Any = None, has_aux: bool = False,
    return_ids: bool = False, sens_param: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the gradients of `fn`, as `value_and_grad` does, whose arguments it has.

    With `has_aux` it returns ``(gradients, other outputs)``. `grad_position`, `weights`, `return_ids` and `sens_param`
    as there.

    Example:
        >>> import mixtrain
        >>> float(mixtrain.grad(lambda x: x * x)(mixtrain.Tensor(3.0)))
        6.0
    """
    return _gradient_function(
        "grad", fn, grad_position, weights, has_aux, return_ids, sens_param,
        lambda outputs, gradients: (gradients, tuple(outputs[1:])) if has_aux else gradients,
    )


def _gradient_function(
    where: str, fn: Callable[..., Any], grad_position: int | tuple[int, ...] | None, weights: Any, has_aux: bool,
    return_ids: bool, sens_param: bool, result: Callable[[Any, Any], Any],
) -> Callable[..., Any]:
    check_function(where, fn)
    positions, parameters = _positions(where, grad_position, weights), weights_of(where, weights)
    for name, value in (("has_aux", has_aux), ("return_ids", return_ids), ("sens_param", sens_param)):
        checks.boolean(where, name, value)

    def gradients(*inputs: Any, **named: Any) -> Any:
        inputs, named, sens = split_sens(where, inputs, named, sens_param)
        passed = (*inputs, *named.values())
        if passed and positions and max(positions) >= len(passed):
            raise checks.fail_value(
                where, f"grad_position must be below {len(passed)}, the number of inputs", grad_position,
                "grad_position=0",
            )
        outputs, by_input, by_weight = differentiate(
            where, fn, inputs, named, positions, parameters, sens, only_first=has_aux
        )
        if has_aux and (not isinstance(outputs, (tuple, list)) or len(outputs) < 2):
            raise checks.fail_value(
                where, "has_aux=True needs a function with more than one output", "one", "return loss, logits"
            )
        if return_ids:
            by_input = tuple(zip(tensor_positions(passed, positions), by_input, strict=True))
            by_weight = tuple(
                (parameter.name, value) for parameter, value in zip(parameters or (), by_weight, strict=True)
            )
        return result(outputs, _combined(grad_position, by_input, weights, by_weight))

    return gradients


def _combined(
    grad_position: int | tuple[int, ...] | None, by_input: tuple[Tensor, ...], weights: Any,
    by_weight: tuple[Tensor, ...],
) -> Tree:
    """Return the gradients in the structure of the arguments: one or a tuple, of inputs, weights or both."""
    of_inputs = by_input[0] if len(by_input) == 1 else by_input
    if weights is None:
        return of_inputs
    of_weights = like_weights(weights, by_weight)
    return of_weights if grad_position is None else (of_inputs, of_weights)


def _positions(where: str, grad_position: int | tuple[int, ...] | None, weights: Any) -> Sequence[int]:
    """Return the positions as a tuple; there must be a position or a weight."""
    if grad_position is None:
        if weights is None:
            raise checks.fail_value(
                where, "grad_position and weights must not both be None", None, "weights=net.trainable_params()"
            )
        return ()
    positions = tuple(grad_position) if isinstance(grad_position, (tuple, list)) else (grad_position,)
    for position in positions:
        if not is_int(position):
            raise checks.fail_type(
                where, "grad_position must be an int or a tuple of ints", position, "grad_position=0"
            )
        if position < 0:
            raise checks.fail_value(where, "grad_position must be at least 0", position, "grad_position=0")
    if len(set(positions)) < len(positions) or not positions:
        raise checks.fail_value(where, "grad_position must name inputs, each once", grad_position, "grad_position=0")
    return tuple(int(position) for position in positions)


def stop_gradient(value: Tree) -> Tree:
    """Return `value`, and stop gradients from flowing through it. Example: ``ops.stop_gradient(x)``."""
    return value if isinstance(value, int | float) else keras.ops.stop_gradient(value)
