"""Update rules: SGD, ASGD, the Adam family, Adagrad, Adadelta, RMSprop and Rprop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final

import keras

from mixtrain import checks
from mixtrain.common.parameter import Parameter
from mixtrain.experimental.optim.optimizer import Optimizer
from mixtrain.optim.groups import ParamsLike
from mixtrain.optim.rprop import resilient_step
from mixtrain.typing import Tensor


def _update_average(slot: Parameter, value: Tensor, beta: float) -> Tensor:
    """Update an exponential moving average with a value, and return it."""
    average = slot.value * beta + value * (1 - beta)
    slot.assign(average)
    return average


def _decays(where: str, name: str, value: Any) -> None:
    """Check decay rates: numbers from 0 to less than 1."""
    if not isinstance(value, (tuple, list)):
        raise checks.fail_type(where, f"{name} must be a tuple of numbers", value, f"{name}=(0.9, 0.999)")
    if len(value) != 2:
        raise checks.fail_value(where, f"{name} must have 2 entries", value, f"{name}=(0.9, 0.999)")
    for index, rate in enumerate(value):
        checks.number(where, f"{name}[{index}]", rate, at_least=0, below=1, example=0.9)


def _growths(where: str, name: str, value: Any) -> None:
    """Check the factors by which steps shrink and grow."""
    if not isinstance(value, (tuple, list)):
        raise checks.fail_type(where, f"{name} must be a tuple of numbers", value, f"{name}=(0.5, 1.2)")
    if len(value) != 2 or not 0 < value[0] < 1 < value[1]:
        raise checks.fail_value(where, f"{name} must be a number below 1 and one above", value, f"{name}=(0.5, 1.2)")


_POSITIVE: Final = partial(checks.number, above=0, example=1e-8)
_NOT_NEGATIVE: Final = partial(checks.number, at_least=0)
_TENSORS: Final = ("alpha", "eps", "lr_decay", "momentum", "momentum_decay")  # These may be Tensors.
_OPTIONS: Final[dict[str, Callable[[str, str, Any], object]]] = {
    **dict.fromkeys(("initial_accumulator_value", "lr_decay", "momentum", "momentum_decay", "weight_decay"),
                    _NOT_NEGATIVE),
    **dict.fromkeys(("dampening", "lambd", "t0"), checks.number), "eps": _POSITIVE, "betas": _decays,
    "etas": _growths, "rho": partial(checks.number, at_least=0, at_most=1),
}


class _Rule(Optimizer):
    """An optimizer whose options are checked, as MindSpore checks them; `_checks` differ from those of others."""

    _checks: ClassVar[dict[str, Callable[[str, str, Any], object]]] = {}

    def _set_groups(self, groups: list[dict[str, Any]], defaults: dict[str, Any]) -> None:
        for options in (defaults, *groups):
            for name, check in (_OPTIONS | self._checks).items():
                if name in options and not (name in _TENSORS and hasattr(options[name], "asnumpy")):
                    check(type(self).__name__, name, options[name])
        super()._set_groups(groups, defaults)


class SGD(_Rule):
    """Stochastic gradient descent with momentum.

    Args:
        params, lr: Parameters or groups, and the learning rate.
        momentum, dampening: Momentum factor, and reduction of the gradient's contribution to the momentum.
        weight_decay: L2 penalty.
        nesterov: Whether to use Nesterov momentum.
        maximize: Whether to maximize the objective.

    Example: ``optim.SGD(net.trainable_params(), lr=0.1, momentum=0.9)``.
    """

    def __init__(
        self, params: ParamsLike, lr: float | Tensor, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0.0, nesterov: bool = False, *, maximize: bool = False,
    ) -> None:
        checks.boolean("SGD", "maximize", maximize)
        if checks.boolean("SGD", "nesterov", nesterov) and not (momentum and not dampening):
            raise checks.fail_value(
                "SGD", "nesterov needs a momentum, and no dampening", (momentum, dampening), "momentum=0.9, dampening=0"
            )
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize,
        })

    def make_slots(self) -> None:
        self.accum = self.slots("accum")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        options = self.group(index)
        gradient = self.decayed(index, weight, gradient)
        if options["momentum"]:
            # The first step is not dampened.
            damped = 1.0 - options["dampening"] * keras.ops.cast(self.step_number() > 1.0, "float32")
            momentum = self.accum[index].value * options["momentum"] + gradient * damped
            self.accum[index].assign(momentum)
            gradient = gradient + momentum * options["momentum"] if options["nesterov"] else momentum
        return weight - gradient * rate


class Adam(_Rule):
    """Adam, with weight decay added to the gradient.

    Args:
        params, lr, weight_decay, maximize: As in `SGD`.
        betas: Decay rates of the mean and of the mean square.
        eps: Added to the denominator.
        amsgrad: Whether to use the maximum of all mean squares so far.

    Example: ``optim.Adam(net.trainable_params(), lr=1e-3)``.
    """

    _decoupled = False
    _checks = {"eps": _NOT_NEGATIVE}

    def __init__(
        self, params: ParamsLike, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize,
        })

    def make_slots(self) -> None:
        self.exp_avg, self.exp_avg_sq = self.slots("exp_avg"), self.slots("exp_avg_sq")
        self.max_exp_avg_sq = self.slots("max_exp_avg_sq")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        options, step = self.group(index), self.step_number()
        if self._decoupled:
            weight = weight * (1 - rate * options["weight_decay"])
        else:
            gradient = self.decayed(index, weight, gradient)
        beta1, beta2 = options["betas"]
        mean = _update_average(self.exp_avg[index], gradient, beta1)
        square = _update_average(self.exp_avg_sq[index], gradient * gradient, beta2)
        if options["amsgrad"]:
            square = keras.ops.maximum(self.max_exp_avg_sq[index].value, square)
            self.max_exp_avg_sq[index].assign(square)
        # Bias correction of both averages, which start at 0.
        step_size = rate / (1 - keras.ops.power(beta1, step))
        root = keras.ops.sqrt(square) / keras.ops.sqrt(1 - keras.ops.power(beta2, step))
        return weight - step_size * mean / (root + options["eps"])


class AdamW(Adam):
    """Adam with decoupled weight decay.

    Args:
        params, lr, betas, eps, amsgrad, maximize: As in `Adam`.
        weight_decay: Decay of the weights, times the learning rate.

    Example: ``optim.AdamW(net.trainable_params(), lr=1e-3)``.
    """

    _decoupled = True

    def __init__(
        self, params: ParamsLike, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class NAdam(_Rule):
    """Adam with Nesterov momentum.

    Args:
        params, lr, betas, eps, weight_decay: As in `Adam`.
        momentum_decay: Decay of the momentum schedule.

    Example: ``optim.NAdam(net.trainable_params())``.
    """

    def __init__(
        self, params: ParamsLike, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0.0, momentum_decay: float = 4e-3,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
        })

    def make_slots(self) -> None:
        self.exp_avg, self.exp_avg_sq = self.slots("exp_avg"), self.slots("exp_avg_sq")
        self.mu_product = self.slots("mu_product", 1.0)

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        options, step = self.group(index), self.step_number()
        beta1, beta2 = options["betas"]
        gradient = self.decayed(index, weight, gradient)
        # The momentum schedule of the paper (Dozat, 2016), at this step and the next.
        mu, next_mu = (
            beta1 * (1 - 0.5 * keras.ops.power(0.96, (step + ahead) * options["momentum_decay"])) for ahead in (0, 1)
        )
        product = self.mu_product[index].value * mu
        self.mu_product[index].assign(product)
        mean = _update_average(self.exp_avg[index], gradient, beta1)
        square = _update_average(self.exp_avg_sq[index], gradient * gradient, beta2)
        root = keras.ops.sqrt(square / (1 - keras.ops.power(beta2, step))) + options["eps"]
        gradient_rate = rate * (1 - mu) / (1 - product)
        mean_rate = rate * next_mu / (1 - product * next_mu)
        return weight - gradient * gradient_rate / root - mean * mean_rate / root


class RAdam(_Rule):
    """Rectified Adam: adapts the step size once the variance of the mean square is small enough.

    Args: params, lr, betas, eps, weight_decay: As in `Adam`.

    Example: ``optim.RAdam(net.trainable_params())``.
    """

    def __init__(
        self, params: ParamsLike, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def make_slots(self) -> None:
        self.exp_avg, self.exp_avg_sq = self.slots("exp_avg"), self.slots("exp_avg_sq")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        options, step = self.group(index), self.step_number()
        beta1, beta2 = options["betas"]
        gradient = self.decayed(index, weight, gradient)
        power = keras.ops.power(beta2, step)
        mean = _update_average(self.exp_avg[index], gradient, beta1) / (1 - keras.ops.power(beta1, step))
        square = _update_average(self.exp_avg_sq[index], gradient * gradient, beta2)
        # Length of the approximated simple moving average, and its limit (Liu et al., 2020).
        rho_inf = 2 / (1 - beta2) - 1
        rho = rho_inf - 2 * step * power / (1 - power)
        rectify = rho > 5.0
        safe_rho = keras.ops.where(rectify, rho, 6.0)  # No root of a negative number in the branch not taken.
        factor = keras.ops.sqrt((safe_rho - 4) * (safe_rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * safe_rho))
        adapted = keras.ops.sqrt(1 - power) / (keras.ops.sqrt(square) + options["eps"]) * factor
        return weight - rate * mean * keras.ops.where(rectify, adapted, 1.0)


class Adamax(_Rule):
    """Adam with a decaying maximum of the gradients instead of the mean square.

    Args:
        params, lr, weight_decay, maximize: As in `SGD`.
        betas: Decay rates of the mean and of the maximum.
        eps: Added to the absolute gradients.

    Example: ``optim.Adamax(net.trainable_params())``.
    """

    def __init__(
        self, params: ParamsLike, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0.0, *, maximize: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
        })

    def make_slots(self) -> None:
        self.exp_avg, self.exp_inf = self.slots("exp_avg"), self.slots("exp_inf")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        options, step = self.group(index), self.step_number()
        beta1, beta2 = options["betas"]
        gradient = self.decayed(index, weight, gradient)
        mean = _update_average(self.exp_avg[index], gradient, beta1)
        maximum = keras.ops.maximum(self.exp_inf[index].value * beta2, keras.ops.abs(gradient) + options["eps"])
        self.exp_inf[index].assign(maximum)
        return weight - rate / (1 - keras.ops.power(beta1, step)) * mean / maximum


class Adagrad(_Rule):
    """Adagrad: divides by the root of the sum of squared gradients.

    Args:
        params, lr, weight_decay, eps, maximize: As in `Adam`.
        lr_decay: Decay of the learning rate with the steps.
        initial_accumulator_value: Initial value of the sum of squares.

    Example: ``optim.Adagrad(net.trainable_params())``.
    """

    def __init__(
        self, params: ParamsLike, lr: float | Tensor = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "maximize": maximize,
        })

    def make_slots(self) -> None:
        self.accum = self.slots("accum", self.defaults["initial_accumulator_value"])

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        options = self.group(index)
        gradient = self.decayed(index, weight, gradient)
        total = self.accum[index].value + gradient * gradient
        self.accum[index].assign(total)
        rate = rate / (1 + (self.step_number() - 1) * options["lr_decay"])
        return weight - rate * gradient / (keras.ops.sqrt(total) + options["eps"])


class Adadelta(_Rule):
    """Adadelta: scales by the ratio of the root mean squares of updates and gradients.

    Args:
        params, lr, weight_decay, maximize: As in `SGD`.
        rho: Decay rate of the mean squares.
        eps: Added under the roots.

    Example: ``optim.Adadelta(net.trainable_params())``.
    """

    def __init__(
        self, params: ParamsLike, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6,
        weight_decay: float = 0.0, *, maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize})

    def make_slots(self) -> None:
        self.accum, self.accum_update = self.slots("accum"), self.slots("accum_update")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        options = self.group(index)
        gradient = self.decayed(index, weight, gradient)
        square = _update_average(self.accum[index], gradient * gradient, options["rho"])
        update_rms = keras.ops.sqrt(self.accum_update[index].value + options["eps"])
        update = update_rms / keras.ops.sqrt(square + options["eps"]) * gradient
        _update_average(self.accum_update[index], update * update, options["rho"])
        return weight - rate * update


class RMSprop(_Rule):
    """RMSprop: divides by the root of the mean square.

    Args:
        params, lr, weight_decay, momentum, maximize: As in `SGD`.
        alpha: Decay rate of the mean square.
        eps: Added to the denominator.
        centered: Whether to use the variance instead of the mean square.

    Example: ``optim.RMSprop(net.trainable_params())``.
    """

    _checks = {"alpha": _NOT_NEGATIVE}

    def __init__(
        self, params: ParamsLike, lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False, maximize: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "maximize": maximize,
        })

    def make_slots(self) -> None:
        self.mean_grad, self.mean_square = self.slots("mean_grad"), self.slots("mean_square")
        self.moment = self.slots("moment")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        options = self.group(index)
        gradient = self.decayed(index, weight, gradient)
        square = _update_average(self.mean_square[index], gradient * gradient, options["alpha"])
        if options["centered"]:
            mean = _update_average(self.mean_grad[index], gradient, options["alpha"])
            square = square - mean * mean
        step = gradient / (keras.ops.sqrt(square) + options["eps"])
        if options["momentum"]:
            step = self.moment[index].value * options["momentum"] + step
            self.moment[index].assign(step)
        return weight - rate * step


class Rprop(_Rule):
    """Resilient propagation: steps by the signs of the gradients, larger while the sign is unchanged.

    Args:
        params, lr, maximize: As in `SGD`; `lr` is the initial step size.
        etas: Factors of the step size if the sign changes, and if it does not.
        step_sizes: Minimum and maximum step size.

    Example: ``optim.Rprop(net.trainable_params())``.
    """

    def __init__(
        self, params: ParamsLike, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize})

    def make_slots(self) -> None:
        self.prev, self.step_size = self.slots("prev"), self.slots("step_size")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        options = self.group(index)
        return weight - resilient_step(self, index, gradient, rate, options["etas"], options["step_sizes"])


class ASGD(_Rule):
    """Averaged stochastic gradient descent, with a decaying learning rate.

    Args:
        params, lr, weight_decay, maximize: As in `SGD`.
        lambd: Decay of the weights.
        alpha: Power of the decay of the rate.
        t0: The step after which weights are averaged.

    Attributes:
        ax: The averages, one Parameter per weight.

    Example: ``optim.ASGD(net.trainable_params(), lr=0.1)``.
    """

    def __init__(
        self, params: ParamsLike, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0.0, maximize: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize,
        })

    def make_slots(self) -> None:
        self.ax, self.eta = self.slots("ax"), self.slots("eta")

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        options, step = self.group(index), self.step_number()
        gradient = self.decayed(index, weight, gradient)
        eta = keras.ops.where(step > 1.0, self.eta[index].value, rate)
        weight = weight * (1.0 - options["lambd"] * eta) - eta * gradient
        mu = 1.0 / keras.ops.maximum(1.0, step - 1.0 - options["t0"])
        average = self.ax[index].value
        self.ax[index].assign(keras.ops.where(mu < 1.0, average + (weight - average) * mu, weight))
        next_eta = rate / keras.ops.power(1.0 + options["lambd"] * rate * step, options["alpha"])
        self.eta[index].assign(keras.ops.broadcast_to(next_eta, weight.shape))
        return weight
