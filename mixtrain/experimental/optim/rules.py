"""The update rules: SGD, ASGD, Adam and its kin, Adagrad, Adadelta, RMSprop and Rprop."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain.experimental.optim.optimizer import Optimizer


def _moved(slot: Any, value: Any, beta: float) -> Any:
    """Move a running mean towards a value by the share 1 - beta, and return it."""
    new = slot.value * beta + value * (1 - beta)
    slot.assign(new)
    return new


class SGD(Optimizer):
    """Descent with momentum.

    Args:
        params: Parameters or groups.
        lr: The learning rate.
        momentum: How much of the last step is kept.
        dampening: What is taken off the gradient's share of the momentum.
        weight_decay: L2 penalty.
        nesterov: Whether the momentum looks ahead.
        maximize: Whether the weights climb.

    Example: ``optim.SGD(net.trainable_params(), lr=0.1, momentum=0.9)``.
    Source: MindSpore, `mindspore.experimental.optim.SGD`.
    """

    def __init__(
        self, params: Any, lr: Any, momentum: float = 0, dampening: float = 0, weight_decay: float = 0.0,
        nesterov: bool = False, *, maximize: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize,
        })

    def make_slots(self) -> None:
        """Make the momenta."""
        self.accum = self.slots("accum")

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return the weight after the step."""
        options = self.group(index)
        gradient = self.decayed(index, weight, gradient)
        if options["momentum"]:
            # The first step takes the whole gradient.
            damped = 1.0 - options["dampening"] * keras.ops.cast(self.step_number() > 1.0, "float32")
            held = self.accum[index].value * options["momentum"] + gradient * damped
            self.accum[index].assign(held)
            gradient = gradient + held * options["momentum"] if options["nesterov"] else held
        return weight - gradient * rate


class Adam(Optimizer):
    """Adam, whose weight decay is added to the gradient.

    Args:
        params: Parameters or groups.
        lr: The learning rate.
        betas: Decays of the mean and of the mean square.
        eps: Added to the denominator.
        weight_decay: L2 penalty.
        amsgrad: Whether the largest mean square so far counts.
        maximize: Whether the weights climb.

    Example: ``optim.Adam(net.trainable_params(), lr=1e-3)``. Source: MindSpore, `mindspore.experimental.optim.Adam`.
    """

    _decoupled = False

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize,
        })

    def make_slots(self) -> None:
        """Make the means."""
        self.exp_avg, self.exp_avg_sq = self.slots("exp_avg"), self.slots("exp_avg_sq")
        self.max_exp_avg_sq = self.slots("max_exp_avg_sq")

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return the weight after the step."""
        options, step = self.group(index), self.step_number()
        if self._decoupled:
            weight = weight * (1 - rate * options["weight_decay"])
        else:
            gradient = self.decayed(index, weight, gradient)
        beta1, beta2 = options["betas"]
        mean = _moved(self.exp_avg[index], gradient, beta1)
        square = _moved(self.exp_avg_sq[index], gradient * gradient, beta2)
        if options["amsgrad"]:
            square = keras.ops.maximum(self.max_exp_avg_sq[index].value, square)
            self.max_exp_avg_sq[index].assign(square)
        size = rate / (1 - keras.ops.power(beta1, step))
        root = keras.ops.sqrt(square) / keras.ops.sqrt(1 - keras.ops.power(beta2, step))
        return weight - size * mean / (root + options["eps"])


class AdamW(Adam):
    """Adam whose weight decay is taken off the weights themselves.

    Args:
        params: Parameters or groups.
        lr: The learning rate.
        betas: Decays of the mean and of the mean square.
        eps: Added to the denominator.
        weight_decay: The share of the weights that is taken off, times the learning rate.
        amsgrad: Whether the largest mean square so far counts.
        maximize: Whether the weights climb.

    Example: ``optim.AdamW(net.trainable_params(), lr=1e-3)``. Source: MindSpore, `mindspore.experimental.optim.AdamW`.
    """

    _decoupled = True

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum.

    Args:
        params: Parameters or groups.
        lr: The learning rate.
        betas: Decays of the mean and of the mean square.
        eps: Added to the denominator.
        weight_decay: L2 penalty.
        momentum_decay: How the momentum grows.

    Example: ``optim.NAdam(net.trainable_params())``. Source: MindSpore, `mindspore.experimental.optim.NAdam`.
    """

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, momentum_decay: float = 4e-3,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
        })

    def make_slots(self) -> None:
        """Make the means and the product of the momenta."""
        self.exp_avg, self.exp_avg_sq = self.slots("exp_avg"), self.slots("exp_avg_sq")
        self.mu_product = self.slots("mu_product", 1.0)

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return the weight after the step."""
        options, step = self.group(index), self.step_number()
        beta1, beta2 = options["betas"]
        gradient = self.decayed(index, weight, gradient)
        now, next_one = (
            beta1 * (1 - 0.5 * keras.ops.power(0.96, (step + ahead) * options["momentum_decay"])) for ahead in (0, 1)
        )
        product = self.mu_product[index].value * now
        self.mu_product[index].assign(product)
        mean = _moved(self.exp_avg[index], gradient, beta1)
        square = _moved(self.exp_avg_sq[index], gradient * gradient, beta2)
        root = keras.ops.sqrt(square / (1 - keras.ops.power(beta2, step))) + options["eps"]
        first = rate * (1 - now) / (1 - product)
        second = rate * next_one / (1 - product * next_one)
        return weight - gradient * first / root - mean * second / root


class RAdam(Optimizer):
    """Adam that begins without the mean square, until that is known well enough.

    Args:
        params: Parameters or groups.
        lr: The learning rate.
        betas: Decays of the mean and of the mean square.
        eps: Added to the denominator.
        weight_decay: L2 penalty.

    Example: ``optim.RAdam(net.trainable_params())``. Source: MindSpore, `mindspore.experimental.optim.RAdam`.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def make_slots(self) -> None:
        """Make the means."""
        self.exp_avg, self.exp_avg_sq = self.slots("exp_avg"), self.slots("exp_avg_sq")

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return the weight after the step."""
        options, step = self.group(index), self.step_number()
        beta1, beta2 = options["betas"]
        gradient = self.decayed(index, weight, gradient)
        power = keras.ops.power(beta2, step)
        mean = _moved(self.exp_avg[index], gradient, beta1) / (1 - keras.ops.power(beta1, step))
        square = _moved(self.exp_avg_sq[index], gradient * gradient, beta2)
        last = 2 / (1 - beta2) - 1
        length = last - 2 * step * power / (1 - power)
        known = length > 5.0
        safe = keras.ops.where(known, length, 6.0)
        factor = keras.ops.sqrt((safe - 4) * (safe - 2) * last / ((last - 4) * (last - 2) * safe))
        adapted = keras.ops.sqrt(1 - power) / (keras.ops.sqrt(square) + options["eps"]) * factor
        return weight - rate * mean * keras.ops.where(known, adapted, 1.0)


class Adamax(Optimizer):
    """Adam with the largest gradient so far in place of the mean square.

    Args:
        params: Parameters or groups.
        lr: The learning rate.
        betas: Decays of the mean and of the maximum.
        eps: Added to the gradients' sizes.
        weight_decay: L2 penalty.
        maximize: Whether the weights climb.

    Example: ``optim.Adamax(net.trainable_params())``. Source: MindSpore, `mindspore.experimental.optim.Adamax`.
    """

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, *, maximize: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
        })

    def make_slots(self) -> None:
        """Make the means and the maxima."""
        self.exp_avg, self.exp_inf = self.slots("exp_avg"), self.slots("exp_inf")

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return the weight after the step."""
        options, step = self.group(index), self.step_number()
        beta1, beta2 = options["betas"]
        gradient = self.decayed(index, weight, gradient)
        mean = _moved(self.exp_avg[index], gradient, beta1)
        largest = keras.ops.maximum(self.exp_inf[index].value * beta2, keras.ops.abs(gradient) + options["eps"])
        self.exp_inf[index].assign(largest)
        return weight - rate / (1 - keras.ops.power(beta1, step)) * mean / largest


class Adagrad(Optimizer):
    """Steps divided by the root of all squared gradients so far.

    Args:
        params: Parameters or groups.
        lr: The learning rate.
        lr_decay: How the learning rate falls with the steps.
        weight_decay: L2 penalty.
        initial_accumulator_value: What the sum of squares begins with.
        eps: Added to the denominator.
        maximize: Whether the weights climb.

    Example: ``optim.Adagrad(net.trainable_params())``. Source: MindSpore, `mindspore.experimental.optim.Adagrad`.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "maximize": maximize,
        })

    def make_slots(self) -> None:
        """Make the sums of squares."""
        self.accum = self.slots("accum", self.defaults["initial_accumulator_value"])

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return the weight after the step."""
        options = self.group(index)
        gradient = self.decayed(index, weight, gradient)
        total = self.accum[index].value + gradient * gradient
        self.accum[index].assign(total)
        rate = rate / (1 + (self.step_number() - 1) * options["lr_decay"])
        return weight - rate * gradient / (keras.ops.sqrt(total) + options["eps"])


class Adadelta(Optimizer):
    """Steps of the size of the last steps.

    Args:
        params: Parameters or groups.
        lr: The learning rate.
        rho: Decay of the mean squares.
        eps: Added under the roots.
        weight_decay: L2 penalty.
        maximize: Whether the weights climb.

    Example: ``optim.Adadelta(net.trainable_params())``. Source: MindSpore, `mindspore.experimental.optim.Adadelta`.
    """

    def __init__(
        self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
        })

    def make_slots(self) -> None:
        """Make the mean squares of gradients and of steps."""
        self.accum, self.accum_update = self.slots("accum"), self.slots("accum_update")

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return the weight after the step."""
        options = self.group(index)
        gradient = self.decayed(index, weight, gradient)
        square = _moved(self.accum[index], gradient * gradient, options["rho"])
        before = keras.ops.sqrt(self.accum_update[index].value + options["eps"])
        change = before / keras.ops.sqrt(square + options["eps"]) * gradient
        _moved(self.accum_update[index], change * change, options["rho"])
        return weight - rate * change


class RMSprop(Optimizer):
    """Steps divided by the root of the mean square.

    Args:
        params: Parameters or groups.
        lr: The learning rate.
        alpha: Decay of the mean square.
        eps: Added to the denominator.
        weight_decay: L2 penalty.
        momentum: How much of the last step is kept.
        centered: Whether the variance takes the place of the mean square.
        maximize: Whether the weights climb.

    Example: ``optim.RMSprop(net.trainable_params())``. Source: MindSpore, `mindspore.experimental.optim.RMSprop`.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
        momentum: float = 0.0, centered: bool = False, maximize: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "maximize": maximize,
        })

    def make_slots(self) -> None:
        """Make the means and the momenta."""
        self.mean_grad, self.mean_square = self.slots("mean_grad"), self.slots("mean_square")
        self.moment = self.slots("moment")

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return the weight after the step."""
        options = self.group(index)
        gradient = self.decayed(index, weight, gradient)
        square = _moved(self.mean_square[index], gradient * gradient, options["alpha"])
        if options["centered"]:
            mean = _moved(self.mean_grad[index], gradient, options["alpha"])
            square = square - mean * mean
        step = gradient / (keras.ops.sqrt(square) + options["eps"])
        if options["momentum"]:
            step = self.moment[index].value * options["momentum"] + step
            self.moment[index].assign(step)
        return weight - rate * step


class Rprop(Optimizer):
    """Steps by the signs of the gradients, longer while a sign stays.

    Args:
        params: Parameters or groups.
        lr: The first length of a step.
        etas: What a length is multiplied by where the sign changes, and where it stays.
        step_sizes: The least and the greatest length.
        maximize: Whether the weights climb.

    Example: ``optim.Rprop(net.trainable_params())``. Source: MindSpore, `mindspore.experimental.optim.Rprop`.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize})

    def make_slots(self) -> None:
        """Make the last gradients and the lengths."""
        self.prev, self.step_size = self.slots("prev"), self.slots("step_size")

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return the weight after the step."""
        options = self.group(index)
        (shrunk, grown), (least, most) = options["etas"], options["step_sizes"]
        turn = keras.ops.sign(gradient * self.prev[index].value)
        length = keras.ops.where(self.step_number() > 1.0, self.step_size[index].value, rate)
        factor = keras.ops.where(turn > 0, grown, keras.ops.where(turn < 0, shrunk, 1.0))
        length = keras.ops.clip(length * factor, least, most)
        gradient = keras.ops.where(turn < 0, keras.ops.zeros_like(gradient), gradient)
        self.prev[index].assign(gradient)
        self.step_size[index].assign(length)
        return weight - keras.ops.sign(gradient) * length


class ASGD(Optimizer):
    """Descent with a falling rate, and the average of its weights, from step `t0` on.

    Args:
        params: Parameters or groups.
        lr: The learning rate.
        lambd: Decay of the weights.
        alpha: Power by which the rate falls.
        t0: The step after which weights are averaged.
        weight_decay: L2 penalty.
        maximize: Whether the weights climb.

    Attributes:
        ax: The averages, one Parameter for each weight.

    Example: ``optim.ASGD(net.trainable_params(), lr=0.1)``. Source: MindSpore, `mindspore.experimental.optim.ASGD`.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0.0, maximize: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize,
        })

    def make_slots(self) -> None:
        """Make the averages and the rates that fall."""
        self.ax, self.eta = self.slots("ax"), self.slots("eta")

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return the weight after the step."""
        options, step = self.group(index), self.step_number()
        gradient = self.decayed(index, weight, gradient)
        eta = keras.ops.where(step > 1.0, self.eta[index].value, rate)
        weight = weight * (1.0 - options["lambd"] * eta) - eta * gradient
        share = 1.0 / keras.ops.maximum(1.0, step - 1.0 - options["t0"])
        average = self.ax[index].value
        self.ax[index].assign(keras.ops.where(share < 1.0, average + (weight - average) * share, weight))
        falling = rate / keras.ops.power(1.0 + options["lambd"] * rate * step, options["alpha"])
        self.eta[index].assign(keras.ops.broadcast_to(falling, weight.shape))
        return weight
