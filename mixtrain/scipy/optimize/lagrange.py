"""Minima under constraints by an augmented Lagrangian, which Adam minimizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mixtrain import checks, ops
from mixtrain.common.jit_function import jit
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from mixtrain.optim import Adam


class LagrangeResults(NamedTuple):
    """The best point that the constraints allow, the objective and the values of the constraints there."""

    succeeded: bool
    best_value: np.ndarray
    object_value: np.ndarray
    loss_value: np.ndarray


def minimize_lagrange(
    func: Callable[..., Any], x0: Tensor, constraints: Sequence[Callable[..., Any]],
    save_tol: Sequence[float] | None = None, obj_weight: float = 1.0, lower: Any = None, upper: Any = None,
    learning_rate: float = 0.1, coincide_fun: Callable[..., Any] | None = None, rounds: int = 10, steps: int = 1000,
    log_sw: bool = False,
) -> LagrangeResults:
    """Find a minimum of `func` from `x0` between `lower` and `upper` where `constraints` are below `save_tol`.

    In each of `rounds` Adam takes `steps` of `learning_rate`; `obj_weight` multiplies `func`. A second argument of
    `func` and the constraints is what `coincide_fun` returns of a point. `log_sw` is not used.
    """
    where, count, single = "scipy.optimize.minimize", len(constraints), np.float32
    for function in (func, *constraints):
        if not callable(function):
            raise checks.fail_type(where, "func and constraints must be functions", function, "lambda x: x[0] - 1.0")
    if save_tol is not None and len(save_tol) != count:
        raise checks.fail_value(where, f"tol must have {count} numbers, as many as constraints", save_tol, "tol=None")
    lower, upper = (None if one is None else ops.add(one, 0.0) for one in (lower, upper))

    def bounded(x: Any) -> Any:
        if lower is None:
            return x + 0.0 if upper is None else upper - x * x
        return x * x + lower if upper is None else (upper - lower) * ops.sigmoid(x) + lower

    def lagrangian(multipliers: Any, sigma: Any) -> Any:
        point, ratio = bounded(x), multipliers / sigma
        shared = () if coincide_fun is None else (coincide_fun(point),)
        value, losses = func(point, *shared), ops.stack([constraint(point, *shared) for constraint in constraints])
        penalty = (ops.relu(ratio + losses) ** 2 - ratio**2).sum()
        return obj_weight * value + sigma / 2 * penalty, value, losses, point

    x = Parameter(x0, name="x")
    optimizer = Adam([x], learning_rate)
    with_gradients = ops.value_and_grad(lagrangian, None, optimizer.parameters, has_aux=True)

    @jit
    def step(multipliers: Any, sigma: Any) -> Any:
        (_, *results), gradients = with_gradients(multipliers, sigma)
        optimizer(gradients)
        return results

    multipliers, sigma, epsilon = np.ones(count, single), single(1), single(1)
    best = LagrangeResults(False, x0.asnumpy(), np.zeros(()), np.ones(count, single))
    for index in range(rounds * steps):
        value, losses, point = (one.asnumpy() for one in step(Tensor(multipliers), Tensor(sigma)))
        best = best if index else best._replace(object_value=value)
        if (losses - (1.0 if save_tol is None else save_tol)).max() < 0 and value < best.object_value:
            best = LagrangeResults(True, point, value, losses)
        if (index + 1) % steps:
            continue
        if np.sqrt(np.sum(np.maximum(losses, -multipliers / sigma) ** 2)) <= epsilon:
            multipliers, epsilon = np.maximum(multipliers + sigma * losses, 0), epsilon / sigma ** single(0.9)
        else:
            sigma = single(1.1) * sigma
            epsilon = 1 / sigma ** single(0.1)
    return best
