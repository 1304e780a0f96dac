"""The steps of optimizers as primitives: each writes its Parameters and returns the new value of the weight."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import backend
from mixtrain.dtype import float32
from mixtrain.ops.inputs import tensor
from mixtrain.ops.primitive import Primitive


def read(name: str, *values: Any) -> list[Any]:
    """Return the present values, float32."""
    return [
        keras.ops.cast(backend.snapshot(value) if isinstance(value, keras.Variable) else tensor(name, value), float32)
        for value in values
    ]


def write(variable: Any, value: Any) -> Any:
    """Write a Parameter, where it is one, and return the value in its dtype."""
    if not isinstance(variable, keras.Variable):
        return keras.ops.cast(value, tensor("", variable).dtype)
    variable.assign(keras.ops.cast(value, variable.dtype))
    return backend.snapshot(variable)


class ApplyMomentum(Primitive):
    """``accumulation = accumulation * momentum + gradient``, ``variable = variable - learning_rate * accumulation``.

    Args:
        use_nesterov: Whether ``gradient + accumulation * momentum`` is the step.
        use_locking: Accepted; without effect.
        gradient_scale: Accepted; without effect, as on a CPU of MindSpore.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> w, v = mixtrain.Parameter([1.0]), mixtrain.Parameter([0.0])
        >>> ops.ApplyMomentum()(w, v, 0.5, mixtrain.Tensor([1.0]), 0.9).asnumpy().tolist()
        [0.5]

    Source: MindSpore, `mindspore.ops.ApplyMomentum`.
    """

    def __init__(self, use_nesterov: bool = False, use_locking: bool = False, gradient_scale: float = 1.0) -> None:
        super().__init__()
        self.use_nesterov, self.use_locking, self.gradient_scale = use_nesterov, use_locking, gradient_scale

    def __call__(self, variable: Any, accumulation: Any, learning_rate: Any, gradient: Any, momentum: Any) -> Any:
        value, held, rate, grad, share = read(self.name, variable, accumulation, learning_rate, gradient, momentum)
        held = held * share + grad
        write(accumulation, held)
        return write(variable, value - rate * (grad + held * share if self.use_nesterov else held))


class SGD(Primitive):
    """Descent with momentum: ``accum = accum * momentum + gradient * (1 - dampening)``.

    Args:
        dampening: What is taken off the gradient's share.
        weight_decay: L2 penalty.
        nesterov: Whether the momentum looks ahead.

    Example: ``ops.SGD()(weight, gradient, learning_rate, accum, momentum, stat)``.
    Source: MindSpore, `mindspore.ops.SGD`.
    """

    def __init__(self, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False) -> None:
        super().__init__()
        self.dampening, self.weight_decay, self.nesterov = dampening, weight_decay, nesterov

    def __call__(
        self, parameters: Any, gradient: Any, learning_rate: Any, accum: Any, momentum: Any, stat: Any
    ) -> Any:
        value, grad, rate, held, share, first = read(
            self.name, parameters, gradient, learning_rate, accum, momentum, stat
        )
        grad = grad + self.weight_decay * value
        held = keras.ops.where(first > 0, grad, held * share + grad * (1 - self.dampening))
        write(accum, held)
        write(stat, keras.ops.zeros_like(first))
        step = keras.ops.where(share > 0, grad + held * share if self.nesterov else held, grad)
        return write(parameters, value - rate * step)


class Adam(Primitive):
    """Adam's step, given the powers of its decays.

    Args:
        use_locking: Accepted; without effect.
        use_nesterov: Whether the mean looks ahead.

    Example: ``ops.Adam()(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient)``.
    Source: MindSpore, `mindspore.ops.Adam`.
    """

    def __init__(self, use_locking: bool = False, use_nesterov: bool = False) -> None:
        super().__init__()
        self.use_locking, self.use_nesterov = use_locking, use_nesterov

    def __call__(
        self, var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
        epsilon: Any, gradient: Any,
    ) -> tuple[Any, Any, Any]:
        value, mean, square, power1, power2, rate, one, two, eps, grad = read(
            self.name, var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient
        )
        mean = mean * one + grad * (1 - one)
        square = square * two + grad * grad * (1 - two)
        rate = rate * keras.ops.sqrt(1 - power2) / (1 - power1)
        step = mean * one + grad * (1 - one) if self.use_nesterov else mean
        return (
            write(var, value - rate * step / (keras.ops.sqrt(square) + eps)), write(m, mean), write(v, square)
        )


class AdamWeightDecay(Primitive):
    """Adam's step without its corrections, with weight decay taken off the weight.

    Args:
        use_locking: Accepted; without effect.

    Example: ``ops.AdamWeightDecay()(var, m, v, lr, beta1, beta2, epsilon, decay, gradient)``.
    Source: MindSpore, `mindspore.ops.AdamWeightDecay`.
    """

    def __init__(self, use_locking: bool = False) -> None:
        super().__init__()
        self.use_locking = use_locking

    def __call__(
        self, var: Any, m: Any, v: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any, gradient: Any
    ) -> tuple[Any, Any, Any]:
        value, mean, square, rate, one, two, eps, share, grad = read(
            self.name, var, m, v, lr, beta1, beta2, epsilon, decay, gradient
        )
        mean = mean * one + grad * (1 - one)
        square = square * two + grad * grad * (1 - two)
        step = mean / (keras.ops.sqrt(square) + eps) + share * value
        return write(var, value - rate * step), write(m, mean), write(v, square)


class ApplyGradientDescent(Primitive):
    """``var = var - alpha * delta``. Example: ``ops.ApplyGradientDescent()(weight, 0.1, gradient)``.

    Source: MindSpore, `mindspore.ops.ApplyGradientDescent`.
    """

    def __call__(self, var: Any, alpha: Any, delta: Any) -> Any:
        value, rate, grad = read(self.name, var, alpha, delta)
        return write(var, value - rate * grad)


class ApplyAdagrad(Primitive):
    """``accum = accum + grad²``, ``var = var - lr * grad / sqrt(accum)``.

    Args:
        update_slots: Whether `accum` is written.

    Example: ``ops.ApplyAdagrad()(var, accum, lr, grad)``. Source: MindSpore, `mindspore.ops.ApplyAdagrad`.
    """

    def __init__(self, update_slots: bool = True) -> None:
        super().__init__()
        self.update_slots = update_slots

    def __call__(self, var: Any, accum: Any, lr: Any, grad: Any) -> tuple[Any, Any]:
        value, held, rate, gradient = read(self.name, var, accum, lr, grad)
        held = held + gradient * gradient if self.update_slots else held
        return write(var, value - rate * gradient / keras.ops.sqrt(held)), write(accum, held)


class ApplyAdagradV2(ApplyAdagrad):
    """`ApplyAdagrad` with `epsilon` added to the root; `update_slots` as there.

    Example: ``ops.ApplyAdagradV2(1e-6)(var, accum, lr, grad)``. Source: MindSpore, `mindspore.ops.ApplyAdagradV2`.
    """

    def __init__(self, epsilon: float, update_slots: bool = True) -> None:
        super().__init__(update_slots)
        self.epsilon = epsilon

    def __call__(self, var: Any, accum: Any, lr: Any, grad: Any) -> tuple[Any, Any]:
        value, held, rate, gradient = read(self.name, var, accum, lr, grad)
        held = held + gradient * gradient if self.update_slots else held
        return write(var, value - rate * gradient / (keras.ops.sqrt(held) + self.epsilon)), write(accum, held)


class ApplyAdadelta(Primitive):
    """Adadelta's step. Example: ``ops.ApplyAdadelta()(var, accum, accum_update, lr, rho, epsilon, grad)``.

    Source: MindSpore, `mindspore.ops.ApplyAdadelta`.
    """

    def __call__(
        self, var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any
    ) -> tuple[Any, Any, Any]:
        value, held, moved, rate, share, eps, gradient = read(
            self.name, var, accum, accum_update, lr, rho, epsilon, grad
        )
        held = share * held + (1 - share) * gradient * gradient
        change = keras.ops.sqrt(moved + eps) / keras.ops.sqrt(held + eps) * gradient
        moved = share * moved + (1 - share) * change * change
        return write(var, value - rate * change), write(accum, held), write(accum_update, moved)


class ApplyAdaMax(Primitive):
    """AdaMax's step. Example: ``ops.ApplyAdaMax()(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad)``.

    Source: MindSpore, `mindspore.ops.ApplyAdaMax`.
    """

    def __call__(
        self, var: Any, m: Any, v: Any, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: Any
    ) -> tuple[Any, Any, Any]:
        value, mean, largest, power, rate, one, two, eps, gradient = read(
            self.name, var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad
        )
        mean = one * mean + (1 - one) * gradient
        largest = keras.ops.maximum(two * largest, keras.ops.abs(gradient))
        step = rate / (1 - power) * mean / (largest + eps)
        return write(var, value - step), write(m, mean), write(v, largest)


class ApplyRMSProp(Primitive):
    """RMSProp's step with momentum.

    Args:
        use_locking: Accepted; without effect.

    Example: ``ops.ApplyRMSProp()(var, mean_square, moment, lr, grad, decay, momentum, epsilon)``.
    Source: MindSpore, `mindspore.ops.ApplyRMSProp`.
    """

    def __init__(self, use_locking: bool = False) -> None:
        super().__init__()
        self.use_locking = use_locking

    def __call__(
        self, var: Any, mean_square: Any, moment: Any, learning_rate: Any, grad: Any, decay: Any, momentum: Any,
        epsilon: Any,
    ) -> Any:
        value, square, held, rate, gradient, share, kept, eps = read(
            self.name, var, mean_square, moment, learning_rate, grad, decay, momentum, epsilon
        )
        square = share * square + (1 - share) * gradient * gradient
        held = kept * held + rate * gradient / keras.ops.sqrt(square + eps)
        write(mean_square, square)
        write(moment, held)
        return write(var, value - held)


class ApplyAdamWithAmsgradV2(Primitive):
    """Adam's step, divided by the largest mean of squares so far.

    Args:
        use_locking: Accepted; without effect.

    Example: ``ops.ApplyAdamWithAmsgradV2()(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, eps, grad)``.
    Source: MindSpore, `mindspore.ops.ApplyAdamWithAmsgradV2`.
    """

    def __init__(self, use_locking: bool = False) -> None:
        super().__init__()
        self.use_locking = use_locking

    def __call__(
        self, var: Any, m: Any, v: Any, vhat: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
        epsilon: Any, grad: Any,
    ) -> tuple[Any, Any, Any, Any]:
        value, mean, square, largest, power1, power2, rate, one, two, eps, gradient = read(
            self.name, var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad
        )
        mean = mean * one + gradient * (1 - one)
        square = square * two + gradient * gradient * (1 - two)
        largest = keras.ops.maximum(largest, square)
        rate = rate * keras.ops.sqrt(1 - power2) / (1 - power1)
        step = rate * mean / (keras.ops.sqrt(largest) + eps)
        return write(var, value - step), write(m, mean), write(v, square), write(vhat, largest)


class ApplyAddSign(Primitive):
    """AddSign's step: longer where gradient and mean agree in sign.

    Example: ``ops.ApplyAddSign()(var, m, lr, alpha, sign_decay, beta, grad)``.
    Source: MindSpore, `mindspore.ops.ApplyAddSign`.
    """

    def __call__(
        self, var: Any, m: Any, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any
    ) -> tuple[Any, Any]:
        value, mean, rate, first, decay, share, gradient = read(
            self.name, var, m, lr, alpha, sign_decay, beta, grad
        )
        mean = share * mean + (1 - share) * gradient
        agrees = keras.ops.sign(gradient) * keras.ops.sign(mean)
        return write(var, value - rate * (first + decay * agrees) * gradient), write(m, mean)


class ApplyPowerSign(Primitive):
    """PowerSign's step: longer where gradient and mean agree in sign, ``exp(logbase * sign_decay * agreement)``.

    Example: ``ops.ApplyPowerSign()(var, m, lr, logbase, sign_decay, beta, grad)``.
    Source: MindSpore, `mindspore.ops.ApplyPowerSign`.
    """

    def __call__(
        self, var: Any, m: Any, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any
    ) -> tuple[Any, Any]:
        value, mean, rate, base, decay, share, gradient = read(
            self.name, var, m, lr, logbase, sign_decay, beta, grad
        )
        mean = share * mean + (1 - share) * gradient
        agrees = keras.ops.sign(gradient) * keras.ops.sign(mean)
        step = keras.ops.exp(base * decay * agrees) * gradient
        return write(var, value - rate * step), write(m, mean)


def shrunk(value: Any, rate: Any, l1: Any, l2: Any) -> Any:
    """Move values towards zero, as the proximal step of the penalties does."""
    size = keras.ops.maximum(keras.ops.abs(value) - rate * l1, 0.0)
    return keras.ops.sign(value) * size / (1 + rate * l2)


class ApplyProximalGradientDescent(Primitive):
    """A step of descent, then one towards zero.

    Example: ``ops.ApplyProximalGradientDescent()(var, alpha, l1, l2, delta)``.
    Source: MindSpore, `mindspore.ops.ApplyProximalGradientDescent`.
    """

    def __call__(self, var: Any, alpha: Any, l1: Any, l2: Any, delta: Any) -> Any:
        value, rate, one, two, gradient = read(self.name, var, alpha, l1, l2, delta)
        return write(var, shrunk(value - rate * gradient, rate, one, two))


class ApplyCenteredRMSProp(Primitive):
    """RMSProp's step, divided by the deviation of the gradients.

    Args:
        use_locking: Accepted; without effect.

    Example: ``ops.ApplyCenteredRMSProp()(var, mean_grad, mean_square, moment, grad, lr, decay, momentum, epsilon)``.
    Source: MindSpore, `mindspore.ops.ApplyCenteredRMSProp`.
    """

    def __init__(self, use_locking: bool = False) -> None:
        super().__init__()
        self.use_locking = use_locking

    def __call__(
        self, var: Any, mean_gradient: Any, mean_square: Any, moment: Any, grad: Any, learning_rate: Any, decay: Any,
        momentum: Any, epsilon: Any,
    ) -> Any:
        value, mean, square, held, gradient, rate, share, kept, eps = read(
            self.name, var, mean_gradient, mean_square, moment, grad, learning_rate, decay, momentum, epsilon
        )
        mean = share * mean + (1 - share) * gradient
        square = share * square + (1 - share) * gradient * gradient
        held = kept * held + rate * gradient / keras.ops.sqrt(square - mean * mean + eps)
        for variable, new in ((mean_gradient, mean), (mean_square, square), (moment, held)):
            write(variable, new)
        return write(var, value - held)


class ApplyProximalAdagrad(Primitive):
    """Adagrad's step, then one towards zero.

    Args:
        use_locking: Accepted; without effect.

    Example: ``ops.ApplyProximalAdagrad()(var, accum, lr, l1, l2, grad)``.
    Source: MindSpore, `mindspore.ops.ApplyProximalAdagrad`.
    """

    def __init__(self, use_locking: bool = False) -> None:
        super().__init__()
        self.use_locking = use_locking

    def __call__(self, var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any) -> tuple[Any, Any]:
        value, total, rate, one, two, gradient = read(self.name, var, accum, lr, l1, l2, grad)
        total = total + gradient * gradient
        rate = rate / keras.ops.sqrt(total)
        return write(var, shrunk(value - rate * gradient, rate, one, two)), write(accum, total)


class ApplyAdagradDA(Primitive):
    """Adagrad's dual averaging: the weight is computed from the sums of gradients alone.

    Args:
        use_locking: Accepted; without effect.

    Example: ``ops.ApplyAdagradDA()(var, sum, squares, grad, lr, l1, l2, global_step)``.
    Source: MindSpore, `mindspore.ops.ApplyAdagradDA`.
    """

    def __init__(self, use_locking: bool = False) -> None:
        super().__init__()
        self.use_locking = use_locking

    def __call__(
        self, var: Any, gradient_accumulator: Any, gradient_squared_accumulator: Any, grad: Any, lr: Any, l1: Any,
        l2: Any, global_step: Any,
    ) -> Any:
        total, squares, gradient, rate, one, two, step = read(
            self.name, gradient_accumulator, gradient_squared_accumulator, grad, lr, l1, l2, global_step
        )
        total, squares = total + gradient, squares + gradient * gradient
        write(gradient_accumulator, total)
        write(gradient_squared_accumulator, squares)
        size = keras.ops.maximum(keras.ops.abs(total) - one * step, 0.0)
        return write(var, -rate * keras.ops.sign(total) * size / (two * step * rate + keras.ops.sqrt(squares)))


def ftrl(
    value: Any, accum: Any, linear: Any, gradient: Any, rate: Any, l1: Any, l2: Any, power: Any, shrinkage: Any = 0.0
) -> tuple[Any, Any, Any]:
    """The weight, the sum of squares and the linear term after a step of FTRL."""
    total = accum + gradient * gradient
    grown = keras.ops.power(total, -power) / rate
    linear = linear + gradient + 2 * shrinkage * value - (grown - keras.ops.power(accum, -power) / rate) * value
    near = keras.ops.clip(linear, -l1, l1) - linear
    return near / (grown + 2 * l2), total, linear


class ApplyFtrl(Primitive):
    """The step of FTRL, follow the regularized leader.

    Args:
        use_locking: Accepted; without effect.

    Example: ``ops.ApplyFtrl()(var, accum, linear, grad, lr, l1, l2, lr_power)``.
    Source: MindSpore, `mindspore.ops.ApplyFtrl`.
    """

    def __init__(self, use_locking: bool = False) -> None:
        super().__init__()
        self.use_locking = use_locking

    def __call__(
        self, var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any
    ) -> Any:
        value, total, line = ftrl(*read(self.name, var, accum, linear, grad, lr, l1, l2, lr_power))
        write(accum, total)
        write(linear, line)
        return write(var, value)
