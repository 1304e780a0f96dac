"""Optimizers with `param_groups` and PyTorch's arguments: `mint.optim`."""

from __future__ import annotations

from typing import Any

from mixtrain import checks
from mixtrain.common.tensor import Tensor
from mixtrain.experimental.optim import rules
from mixtrain.lazy_names import serve_names
from mixtrain.optim.groups import ParamsLike

__all__ = ["SGD", "Adam", "AdamW", "FusedAdamW"]


def _check(where: str, lr: Any, betas: Any, eps: Any, weight_decay: Any, flags: dict[str, Any]) -> None:
    """Raise a TypeError for options of other types than MindSpore accepts; their ranges are those of the rules."""
    checks.instance(where, "betas", betas, tuple, "betas=(0.9, 0.999)")
    named = {f"betas[{index}]": value for index, value in enumerate(betas)}
    for name, value in {"lr": lr, "eps": eps, "weight_decay": weight_decay, **named}.items():
        checks.instance(where, name, value, float, f"{name}=0.001")
    for name, value in flags.items():
        checks.boolean(where, name, value)


class Adam(rules.Adam):
    """Adam, with weight decay added to the gradient.

    Args:
        params: Parameters, or groups of them.
        lr, betas, eps, weight_decay: Floats: learning rate, decay rates, addend of the denominator, penalty.
        amsgrad: Whether to use the maximum of all mean squares so far.
        maximize: Whether to maximize the objective.

    Example: ``mint.optim.Adam(net.trainable_params(), lr=1e-3)``.
    """

    def __init__(
        self, params: ParamsLike, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False,
    ) -> None:
        _check(type(self).__name__, lr, betas, eps, weight_decay, {"amsgrad": amsgrad, "maximize": maximize})
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class AdamW(Adam):
    """Adam with decoupled weight decay.

    Args:
        params, lr, betas, eps, amsgrad, maximize: As in `Adam`.
        weight_decay: Decay of the weights, times the learning rate.

    Example: ``mint.optim.AdamW(net.trainable_params(), lr=1e-3)``.
    """

    _decoupled = True

    def __init__(
        self, params: ParamsLike, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class FusedAdamW(AdamW):
    """`AdamW`; the backend fuses its operations. Example: ``mint.optim.FusedAdamW(net.trainable_params())``."""


class SGD(rules.SGD):
    """Stochastic gradient descent with momentum.

    Args:
        params, lr: Parameters or groups of them, and the learning rate.
        momentum, dampening: Momentum factor, and reduction of the gradient's contribution to the momentum.
        weight_decay: L2 penalty.
        nesterov: Whether to use Nesterov momentum, which needs momentum and no dampening.
        maximize: Whether to maximize the objective.

    Example: ``mint.optim.SGD(net.trainable_params(), lr=0.1, momentum=0.9)``.
    """

    def __init__(
        self, params: ParamsLike, lr: float | Tensor, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False,
    ) -> None:
        where, lr = type(self).__name__, lr.item() if isinstance(lr, Tensor) else lr
        for name, value in (("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)):
            checks.number(where, name, value, at_least=0, example=0.1)
        for name, flag in (("nesterov", nesterov), ("maximize", maximize)):
            checks.boolean(where, name, flag)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise checks.fail_value(where, "nesterov=True needs momentum and dampening=0", momentum, "momentum=0.9")
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, maximize=maximize)


serve_names(__name__)
