"""Optimizer steps as primitives: each updates its Parameters and returns the new value of the weight."""

from __future__ import annotations

import keras

from mixtrain import backend
from mixtrain.dtype import float32
from mixtrain.ops.inputs import tensor
from mixtrain.ops.primitive import Primitive
from mixtrain.typing import Tensor, TensorLike, Variable


def read(name: str, *values: TensorLike) -> list[Tensor]:
    """Return the current values of tensors and Parameters as float32."""
    return [
        keras.ops.cast(backend.snapshot(value) if isinstance(value, keras.Variable) else tensor(name, value), float32)
        for value in values
    ]


def write(variable: Variable, value: TensorLike) -> Tensor:
    """Assign `value` to `variable` if that is a Parameter, and return it in the dtype of `variable`."""
    if not isinstance(variable, keras.Variable):
        return keras.ops.cast(value, tensor("ops", variable).dtype)
    variable.assign(keras.ops.cast(value, variable.dtype))
    return backend.snapshot(variable)


class Locking(Primitive):
    """A primitive that accepts `use_locking`, which has no effect."""

    def __init__(self, use_locking: bool = False) -> None:
        super().__init__()
        self.use_locking = use_locking


class ApplyMomentum(Primitive):
    """``accumulation = accumulation * momentum + gradient``, ``variable = variable - learning_rate * accumulation``.

    With `use_nesterov` the step is ``gradient + accumulation * momentum``. `use_locking` and `gradient_scale` are
    accepted, as on a CPU of MindSpore. Example:
    ``ops.ApplyMomentum()(variable, accumulation, learning_rate, gradient, momentum)``.
    """

    def __init__(self, use_nesterov: bool = False, use_locking: bool = False, gradient_scale: float = 1.0) -> None:
        super().__init__()
        self.use_nesterov, self.use_locking, self.gradient_scale = use_nesterov, use_locking, gradient_scale

    def __call__(
        self, variable: Variable, accumulation: Variable, learning_rate: TensorLike, gradient: TensorLike,
        momentum: TensorLike,
    ) -> Tensor:
        value, velocity, lr, grad, decay = read(self.name, variable, accumulation, learning_rate, gradient, momentum)
        velocity = velocity * decay + grad
        write(accumulation, velocity)
        return write(variable, value - lr * (grad + velocity * decay if self.use_nesterov else velocity))


class SGD(Primitive):
    """Gradient descent with momentum: ``accum = accum * momentum + gradient * (1 - dampening)``.

    `weight_decay`: L2 penalty; `nesterov`: whether to use Nesterov momentum. Example:
    ``ops.SGD()(weight, gradient, learning_rate, accum, momentum, stat)``.
    """

    def __init__(self, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False) -> None:
        super().__init__()
        self.dampening, self.weight_decay, self.nesterov = dampening, weight_decay, nesterov

    def __call__(
        self, parameters: Variable, gradient: TensorLike, learning_rate: TensorLike, accum: Variable,
        momentum: TensorLike, stat: Variable,
    ) -> Tensor:
        value, grad, lr, velocity, decay, first = read(
            self.name, parameters, gradient, learning_rate, accum, momentum, stat
        )
        grad = grad + self.weight_decay * value
        # The first step has no dampening; `stat` is positive until then.
        velocity = keras.ops.where(first > 0, grad, velocity * decay + grad * (1 - self.dampening))
        write(accum, velocity)
        write(stat, keras.ops.zeros_like(first))
        step = keras.ops.where(decay > 0, grad + velocity * decay if self.nesterov else velocity, grad)
        return write(parameters, value - lr * step)


class Adam(Primitive):
    """Adam's step; `beta1_power` and `beta2_power` are the decays to the power of the step.

    `use_nesterov`: whether to use Nesterov momentum; `use_locking` is accepted. Example:
    ``ops.Adam()(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient)``.
    """

    def __init__(self, use_locking: bool = False, use_nesterov: bool = False) -> None:
        super().__init__()
        self.use_locking, self.use_nesterov = use_locking, use_nesterov

    def __call__(
        self, var: Variable, m: Variable, v: Variable, beta1_power: TensorLike, beta2_power: TensorLike, lr: TensorLike,
        beta1: TensorLike, beta2: TensorLike, epsilon: TensorLike, gradient: TensorLike,
    ) -> tuple[Tensor, Tensor, Tensor]:
        value, mean, square, power1, power2, lr, beta1, beta2, epsilon, grad = read(
            self.name, var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient
        )
        mean = mean * beta1 + grad * (1 - beta1)
        square = square * beta2 + grad * grad * (1 - beta2)
        lr = lr * keras.ops.sqrt(1 - power2) / (1 - power1)
        step = mean * beta1 + grad * (1 - beta1) if self.use_nesterov else mean
        return (
            write(var, value - lr * step / (keras.ops.sqrt(square) + epsilon)), write(m, mean), write(v, square)
        )


class AdamWeightDecay(Locking):
    """Adam's step without bias correction, with decoupled weight decay; `use_locking` is accepted.

    Example: ``ops.AdamWeightDecay()(var, m, v, lr, beta1, beta2, epsilon, decay, gradient)``.
    """

    def __call__(
        self, var: Variable, m: Variable, v: Variable, lr: TensorLike, beta1: TensorLike, beta2: TensorLike,
        epsilon: TensorLike, decay: TensorLike, gradient: TensorLike,
    ) -> tuple[Tensor, Tensor, Tensor]:
        value, mean, square, lr, beta1, beta2, epsilon, decay, grad = read(
            self.name, var, m, v, lr, beta1, beta2, epsilon, decay, gradient
        )
        mean = mean * beta1 + grad * (1 - beta1)
        square = square * beta2 + grad * grad * (1 - beta2)
        step = mean / (keras.ops.sqrt(square) + epsilon) + decay * value
        return write(var, value - lr * step), write(m, mean), write(v, square)


class ApplyGradientDescent(Primitive):
    """``var = var - alpha * delta``. Example: ``ops.ApplyGradientDescent()(weight, 0.1, gradient)``."""

    def __call__(self, var: Variable, alpha: TensorLike, delta: TensorLike) -> Tensor:
        value, lr, grad = read(self.name, var, alpha, delta)
        return write(var, value - lr * grad)


class ApplyAdagrad(Primitive):
    """``accum = accum + grad²``, unless `update_slots` is False; ``var = var - lr * grad / sqrt(accum)``.

    Example: ``ops.ApplyAdagrad()(var, accum, lr, grad)``.
    """

    def __init__(self, update_slots: bool = True) -> None:
        super().__init__()
        self.update_slots = update_slots

    def __call__(self, var: Variable, accum: Variable, lr: TensorLike, grad: TensorLike) -> tuple[Tensor, Tensor]:
        value, total, lr, grad = read(self.name, var, accum, lr, grad)
        total = total + grad * grad if self.update_slots else total
        return write(var, value - lr * grad / keras.ops.sqrt(total)), write(accum, total)


class ApplyAdagradV2(ApplyAdagrad):
    """`ApplyAdagrad` with `epsilon` added to the root; `update_slots` as there.

    Example: ``ops.ApplyAdagradV2(1e-6)(var, accum, lr, grad)``.
    """

    def __init__(self, epsilon: float, update_slots: bool = True) -> None:
        super().__init__(update_slots)
        self.epsilon = epsilon

    def __call__(self, var: Variable, accum: Variable, lr: TensorLike, grad: TensorLike) -> tuple[Tensor, Tensor]:
        value, total, lr, grad = read(self.name, var, accum, lr, grad)
        total = total + grad * grad if self.update_slots else total
        return write(var, value - lr * grad / (keras.ops.sqrt(total) + self.epsilon)), write(accum, total)


class ApplyAdadelta(Primitive):
    """Adadelta's step. Example: ``ops.ApplyAdadelta()(var, accum, accum_update, lr, rho, epsilon, grad)``."""

    def __call__(
        self, var: Variable, accum: Variable, accum_update: Variable, lr: TensorLike, rho: TensorLike,
        epsilon: TensorLike, grad: TensorLike,
    ) -> tuple[Tensor, Tensor, Tensor]:
        value, square, step_square, lr, rho, epsilon, grad = read(
            self.name, var, accum, accum_update, lr, rho, epsilon, grad
        )
        square = rho * square + (1 - rho) * grad * grad
        step = keras.ops.sqrt(step_square + epsilon) / keras.ops.sqrt(square + epsilon) * grad
        step_square = rho * step_square + (1 - rho) * step * step
        return write(var, value - lr * step), write(accum, square), write(accum_update, step_square)


class ApplyAdaMax(Primitive):
    """AdaMax's step. Example: ``ops.ApplyAdaMax()(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad)``."""

    def __call__(
        self, var: Variable, m: Variable, v: Variable, beta1_power: TensorLike, lr: TensorLike, beta1: TensorLike,
        beta2: TensorLike, epsilon: TensorLike, grad: TensorLike,
    ) -> tuple[Tensor, Tensor, Tensor]:
        value, mean, maximum, power, lr, beta1, beta2, epsilon, grad = read(
            self.name, var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad
        )
        mean = beta1 * mean + (1 - beta1) * grad
        maximum = keras.ops.maximum(beta2 * maximum, keras.ops.abs(grad))
        step = lr / (1 - power) * mean / (maximum + epsilon)
        return write(var, value - step), write(m, mean), write(v, maximum)


class ApplyRMSProp(Locking):
    """RMSProp's step with momentum; `use_locking` is accepted.

    Example: ``ops.ApplyRMSProp()(var, mean_square, moment, lr, grad, decay, momentum, epsilon)``.
    """

    def __call__(
        self, var: Variable, mean_square: Variable, moment: Variable, learning_rate: TensorLike, grad: TensorLike,
        decay: TensorLike, momentum: TensorLike, epsilon: TensorLike,
    ) -> Tensor:
        value, square, velocity, lr, grad, decay, momentum, epsilon = read(
            self.name, var, mean_square, moment, learning_rate, grad, decay, momentum, epsilon
        )
        square = decay * square + (1 - decay) * grad * grad
        velocity = momentum * velocity + lr * grad / keras.ops.sqrt(square + epsilon)
        write(mean_square, square)
        write(moment, velocity)
        return write(var, value - velocity)


class ApplyAdamWithAmsgradV2(Locking):
    """AMSGrad's step: Adam's, divided by the largest mean of squares so far; `use_locking` is accepted.

    Example: ``ops.ApplyAdamWithAmsgradV2()(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, eps, grad)``.
    """

    def __call__(
        self, var: Variable, m: Variable, v: Variable, vhat: Variable, beta1_power: TensorLike, beta2_power: TensorLike,
        lr: TensorLike, beta1: TensorLike, beta2: TensorLike, epsilon: TensorLike, grad: TensorLike,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        value, mean, square, maximum, power1, power2, lr, beta1, beta2, epsilon, grad = read(
            self.name, var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad
        )
        mean = mean * beta1 + grad * (1 - beta1)
        square = square * beta2 + grad * grad * (1 - beta2)
        maximum = keras.ops.maximum(maximum, square)
        lr = lr * keras.ops.sqrt(1 - power2) / (1 - power1)
        step = lr * mean / (keras.ops.sqrt(maximum) + epsilon)
        return write(var, value - step), write(m, mean), write(v, square), write(vhat, maximum)


class ApplyAddSign(Primitive):
    """AddSign's step: longer where gradient and mean agree in sign.

    Example: ``ops.ApplyAddSign()(var, m, lr, alpha, sign_decay, beta, grad)``.
    """

    def __call__(
        self, var: Variable, m: Variable, lr: TensorLike, alpha: TensorLike, sign_decay: TensorLike, beta: TensorLike,
        grad: TensorLike,
    ) -> tuple[Tensor, Tensor]:
        value, mean, lr, alpha, sign_decay, beta, grad = read(
            self.name, var, m, lr, alpha, sign_decay, beta, grad
        )
        mean = beta * mean + (1 - beta) * grad
        agreement = keras.ops.sign(grad) * keras.ops.sign(mean)
        return write(var, value - lr * (alpha + sign_decay * agreement) * grad), write(m, mean)


class ApplyPowerSign(Primitive):
    """PowerSign's step: longer where gradient and mean agree in sign, ``exp(logbase * sign_decay * agreement)``.

    Example: ``ops.ApplyPowerSign()(var, m, lr, logbase, sign_decay, beta, grad)``.
    """

    def __call__(
        self, var: Variable, m: Variable, lr: TensorLike, logbase: TensorLike, sign_decay: TensorLike, beta: TensorLike,
        grad: TensorLike,
    ) -> tuple[Tensor, Tensor]:
        value, mean, lr, logbase, sign_decay, beta, grad = read(
            self.name, var, m, lr, logbase, sign_decay, beta, grad
        )
        mean = beta * mean + (1 - beta) * grad
        agreement = keras.ops.sign(grad) * keras.ops.sign(mean)
        step = keras.ops.exp(logbase * sign_decay * agreement) * grad
        return write(var, value - lr * step), write(m, mean)


def soft_threshold(value: TensorLike, rate: TensorLike, l1: TensorLike, l2: TensorLike) -> Tensor:
    """Apply the proximal operator of the L1 and L2 penalties: soft thresholding and shrinkage."""
    magnitude = keras.ops.maximum(keras.ops.abs(value) - rate * l1, 0.0)
    return keras.ops.sign(value) * magnitude / (1 + rate * l2)


class ApplyProximalGradientDescent(Primitive):
    """A gradient descent step, then the proximal step of the penalties.

    Example: ``ops.ApplyProximalGradientDescent()(var, alpha, l1, l2, delta)``.
    """

    def __call__(self, var: Variable, alpha: TensorLike, l1: TensorLike, l2: TensorLike, delta: TensorLike) -> Tensor:
        value, lr, l1, l2, grad = read(self.name, var, alpha, l1, l2, delta)
        return write(var, soft_threshold(value - lr * grad, lr, l1, l2))


class ApplyCenteredRMSProp(Locking):
    """RMSProp's step, divided by the standard deviation of the gradients; `use_locking` is accepted.

    Example: ``ops.ApplyCenteredRMSProp()(var, mean_grad, mean_square, moment, grad, lr, decay, momentum, epsilon)``.
    """

    def __call__(
        self, var: Variable, mean_gradient: Variable, mean_square: Variable, moment: Variable, grad: TensorLike,
        learning_rate: TensorLike, decay: TensorLike, momentum: TensorLike, epsilon: TensorLike,
    ) -> Tensor:
        value, mean, square, velocity, grad, lr, decay, momentum, epsilon = read(
            self.name, var, mean_gradient, mean_square, moment, grad, learning_rate, decay, momentum, epsilon
        )
        mean = decay * mean + (1 - decay) * grad
        square = decay * square + (1 - decay) * grad * grad
        velocity = momentum * velocity + lr * grad / keras.ops.sqrt(square - mean * mean + epsilon)
        for variable, new in ((mean_gradient, mean), (mean_square, square), (moment, velocity)):
            write(variable, new)
        return write(var, value - velocity)


class ApplyProximalAdagrad(Locking):
    """Adagrad's step, then the proximal step of the penalties; `use_locking` is accepted.

    Example: ``ops.ApplyProximalAdagrad()(var, accum, lr, l1, l2, grad)``.
    """

    def __call__(
        self, var: Variable, accum: Variable, lr: TensorLike, l1: TensorLike, l2: TensorLike, grad: TensorLike
    ) -> tuple[Tensor, Tensor]:
        value, total, lr, l1, l2, grad = read(self.name, var, accum, lr, l1, l2, grad)
        total = total + grad * grad
        lr = lr / keras.ops.sqrt(total)
        return write(var, soft_threshold(value - lr * grad, lr, l1, l2)), write(accum, total)


class ApplyAdagradDA(Locking):
    """Adagrad's dual averaging: the weight is computed from the sums of gradients alone; `use_locking` is accepted.

    Example: ``ops.ApplyAdagradDA()(var, sum, squares, grad, lr, l1, l2, global_step)``.
    """

    def __call__(
        self, var: Variable, gradient_accumulator: Variable, gradient_squared_accumulator: Variable, grad: TensorLike,
        lr: TensorLike, l1: TensorLike, l2: TensorLike, global_step: TensorLike,
    ) -> Tensor:
        total, squares, grad, lr, l1, l2, step = read(
            self.name, gradient_accumulator, gradient_squared_accumulator, grad, lr, l1, l2, global_step
        )
        total, squares = total + grad, squares + grad * grad
        write(gradient_accumulator, total)
        write(gradient_squared_accumulator, squares)
        magnitude = keras.ops.maximum(keras.ops.abs(total) - l1 * step, 0.0)
        return write(var, -lr * keras.ops.sign(total) * magnitude / (l2 * step * lr + keras.ops.sqrt(squares)))


def ftrl(
    value: TensorLike, accum: Tensor, linear: Tensor, gradient: TensorLike, rate: TensorLike, l1: TensorLike,
    l2: TensorLike, power: TensorLike, shrinkage: TensorLike = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """The weight, the sum of squares and the linear term after a step of FTRL."""
    total = accum + gradient * gradient
    scale = keras.ops.power(total, -power) / rate
    linear = linear + gradient + 2 * shrinkage * value - (scale - keras.ops.power(accum, -power) / rate) * value
    thresholded = keras.ops.clip(linear, -l1, l1) - linear
    return thresholded / (scale + 2 * l2), total, linear


class ApplyFtrl(Locking):
    """The step of FTRL, follow the regularized leader; `use_locking` is accepted.

    Example: ``ops.ApplyFtrl()(var, accum, linear, grad, lr, l1, l2, lr_power)``.
    """

    def __call__(
        self, var: Variable, accum: Variable, linear: Variable, grad: TensorLike, lr: TensorLike, l1: TensorLike,
        l2: TensorLike, lr_power: TensorLike,
    ) -> Tensor:
        value, total, new_linear = ftrl(*read(self.name, var, accum, linear, grad, lr, l1, l2, lr_power))
        write(accum, total)
        write(linear, new_linear)
        return write(var, value)
