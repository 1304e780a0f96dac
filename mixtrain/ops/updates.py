"""Optimizer steps as primitives: each updates its Parameters and returns the new value of the weight."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import keras

from mixtrain import backend
from mixtrain.dtype import float32
from mixtrain.ops.inputs import tensor
from mixtrain.ops.primitive import as_primitive
from mixtrain.ops.writes import write
from mixtrain.typing import Tensor, TensorLike


def read(name: str, *values: TensorLike) -> list[Tensor]:
    """Return the current values of tensors and Parameters as float32."""
    return [
        keras.ops.cast(backend.snapshot(value) if isinstance(value, keras.Variable) else tensor(name, value), float32)
        for value in values
    ]


def step(*variables: str, first_only: bool = False) -> Callable[[Callable[..., tuple[Tensor, ...]]], Any]:
    """Decorate a step as a primitive: from the values of its arguments in float32 it computes those of `variables`.

    These are written, and returned: a tuple of all, or with `first_only` the first. Keyword arguments are settings.
    """

    def decorate(compute: Callable[..., tuple[Tensor, ...]]) -> Any:
        signature, name = inspect.signature(compute), compute.__name__

        @functools.wraps(compute)
        def update(*inputs: Any, **named: Any) -> Tensor | tuple[Tensor, ...]:
            arguments = signature.bind(*inputs, **named).arguments
            tensors = [key for key in arguments if signature.parameters[key].kind is not inspect.Parameter.KEYWORD_ONLY]
            values = dict(zip(tensors, read(name, *(arguments[key] for key in tensors)), strict=True))
            new = compute(**arguments | values)
            written = tuple(write(arguments[key], value) for key, value in zip(variables, new, strict=True))
            return written[0] if first_only else written

        made = as_primitive(update)
        made.compute = staticmethod(compute)  # The rule by itself, for steps of some rows.
        return made

    return decorate


@step("variable", "accumulation", first_only=True)
def ApplyMomentum(
    variable: Tensor, accumulation: Tensor, learning_rate: Tensor, gradient: Tensor, momentum: Tensor, *,
    use_nesterov: bool = False, use_locking: bool = False, gradient_scale: float = 1.0,
) -> tuple[Tensor, ...]:
    """``accumulation = accumulation * momentum + gradient``, ``variable = variable - learning_rate * accumulation``.

    With `use_nesterov` the step is ``gradient + accumulation * momentum``. `use_locking` and `gradient_scale` are
    accepted, as on a CPU of MindSpore. Example:
    ``ops.ApplyMomentum()(variable, accumulation, learning_rate, gradient, momentum)``.
    """
    velocity = accumulation * momentum + gradient
    return variable - learning_rate * (gradient + velocity * momentum if use_nesterov else velocity), velocity


@step("parameters", "accum", "stat", first_only=True)
def SGD(
    parameters: Tensor, gradient: Tensor, learning_rate: Tensor, accum: Tensor, momentum: Tensor, stat: Tensor, *,
    dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False,
) -> tuple[Tensor, ...]:
    """Gradient descent with momentum: ``accum = accum * momentum + gradient * (1 - dampening)``.

    `weight_decay`: L2 penalty; `nesterov`: whether to use Nesterov momentum. Example:
    ``ops.SGD()(weight, gradient, learning_rate, accum, momentum, stat)``.
    """
    grad = gradient + weight_decay * parameters
    # The first step has no dampening; `stat` is positive until then.
    velocity = keras.ops.where(stat > 0, grad, accum * momentum + grad * (1 - dampening))
    direction = keras.ops.where(momentum > 0, grad + velocity * momentum if nesterov else velocity, grad)
    return parameters - learning_rate * direction, velocity, keras.ops.zeros_like(stat)


def _adam_means(m: Tensor, v: Tensor, beta1: Tensor, beta2: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    return m * beta1 + grad * (1 - beta1), v * beta2 + grad * grad * (1 - beta2)


@step("var", "m", "v")
def Adam(
    var: Tensor, m: Tensor, v: Tensor, beta1_power: Tensor, beta2_power: Tensor, lr: Tensor, beta1: Tensor,
    beta2: Tensor, epsilon: Tensor, gradient: Tensor, *, use_locking: bool = False, use_nesterov: bool = False,
) -> tuple[Tensor, ...]:
    """Adam's step; `beta1_power` and `beta2_power` are the decays to the power of the step.

    `use_nesterov`: whether to use Nesterov momentum; `use_locking` is accepted. Example:
    ``ops.Adam()(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient)``.
    """
    mean, square = _adam_means(m, v, beta1, beta2, gradient)
    lr = lr * keras.ops.sqrt(1 - beta2_power) / (1 - beta1_power)
    direction = mean * beta1 + gradient * (1 - beta1) if use_nesterov else mean
    return var - lr * direction / (keras.ops.sqrt(square) + epsilon), mean, square


@step("var", "m", "v")
def AdamWeightDecay(
    var: Tensor, m: Tensor, v: Tensor, lr: Tensor, beta1: Tensor, beta2: Tensor, epsilon: Tensor, decay: Tensor,
    gradient: Tensor, *, use_locking: bool = False,
) -> tuple[Tensor, ...]:
    """Adam's step without bias correction, with decoupled weight decay; `use_locking` is accepted.

    Example: ``ops.AdamWeightDecay()(var, m, v, lr, beta1, beta2, epsilon, decay, gradient)``.
    """
    mean, square = _adam_means(m, v, beta1, beta2, gradient)
    return var - lr * (mean / (keras.ops.sqrt(square) + epsilon) + decay * var), mean, square


@step("var", first_only=True)
def ApplyGradientDescent(var: Tensor, alpha: Tensor, delta: Tensor) -> tuple[Tensor, ...]:
    """``var = var - alpha * delta``. Example: ``ops.ApplyGradientDescent()(weight, 0.1, gradient)``."""
    return (var - alpha * delta,)


@step("var", "accum")
def ApplyAdagrad(
    var: Tensor, accum: Tensor, lr: Tensor, grad: Tensor, *, update_slots: bool = True
) -> tuple[Tensor, ...]:
    """``accum = accum + grad²``, unless `update_slots` is False; ``var = var - lr * grad / sqrt(accum)``.

    Example: ``ops.ApplyAdagrad()(var, accum, lr, grad)``.
    """
    total = accum + grad * grad if update_slots else accum
    return var - lr * grad / keras.ops.sqrt(total), total


@step("var", "accum")
def ApplyAdagradV2(
    var: Tensor, accum: Tensor, lr: Tensor, grad: Tensor, *, epsilon: float, update_slots: bool = True
) -> tuple[Tensor, ...]:
    """`ApplyAdagrad` with `epsilon` added to the root; `update_slots` as there.

    Example: ``ops.ApplyAdagradV2(1e-6)(var, accum, lr, grad)``.
    """
    total = accum + grad * grad if update_slots else accum
    return var - lr * grad / (keras.ops.sqrt(total) + epsilon), total


@step("var", "accum", "accum_update")
def ApplyAdadelta(
    var: Tensor, accum: Tensor, accum_update: Tensor, lr: Tensor, rho: Tensor, epsilon: Tensor, grad: Tensor
) -> tuple[Tensor, ...]:
    """Adadelta's step. Example: ``ops.ApplyAdadelta()(var, accum, accum_update, lr, rho, epsilon, grad)``."""
    square = rho * accum + (1 - rho) * grad * grad
    change = keras.ops.sqrt(accum_update + epsilon) / keras.ops.sqrt(square + epsilon) * grad
    return var - lr * change, square, rho * accum_update + (1 - rho) * change * change


@step("var", "m", "v")
def ApplyAdaMax(
    var: Tensor, m: Tensor, v: Tensor, beta1_power: Tensor, lr: Tensor, beta1: Tensor, beta2: Tensor, epsilon: Tensor,
    grad: Tensor,
) -> tuple[Tensor, ...]:
    """AdaMax's step. Example: ``ops.ApplyAdaMax()(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad)``."""
    mean = beta1 * m + (1 - beta1) * grad
    maximum = keras.ops.maximum(beta2 * v, keras.ops.abs(grad))
    return var - lr / (1 - beta1_power) * mean / (maximum + epsilon), mean, maximum


@step("var", "mean_square", "moment", first_only=True)
def ApplyRMSProp(
    var: Tensor, mean_square: Tensor, moment: Tensor, learning_rate: Tensor, grad: Tensor, decay: Tensor,
    momentum: Tensor, epsilon: Tensor, *, use_locking: bool = False,
) -> tuple[Tensor, ...]:
    """RMSProp's step with momentum; `use_locking` is accepted.

    Example: ``ops.ApplyRMSProp()(var, mean_square, moment, lr, grad, decay, momentum, epsilon)``.
    """
    square = decay * mean_square + (1 - decay) * grad * grad
    velocity = momentum * moment + learning_rate * grad / keras.ops.sqrt(square + epsilon)
    return var - velocity, square, velocity


@step("var", "m", "v", "vhat")
def ApplyAdamWithAmsgradV2(
    var: Tensor, m: Tensor, v: Tensor, vhat: Tensor, beta1_power: Tensor, beta2_power: Tensor, lr: Tensor,
    beta1: Tensor, beta2: Tensor, epsilon: Tensor, grad: Tensor, *, use_locking: bool = False,
) -> tuple[Tensor, ...]:
    """AMSGrad's step: Adam's, divided by the largest mean of squares so far; `use_locking` is accepted.

    Example: ``ops.ApplyAdamWithAmsgradV2()(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, eps, grad)``.
    """
    mean, square = _adam_means(m, v, beta1, beta2, grad)
    maximum = keras.ops.maximum(vhat, square)
    lr = lr * keras.ops.sqrt(1 - beta2_power) / (1 - beta1_power)
    return var - lr * mean / (keras.ops.sqrt(maximum) + epsilon), mean, square, maximum


@step("var", "m", "v", "vhat")
def ApplyAdamWithAmsgrad(
    var: Tensor, m: Tensor, v: Tensor, vhat: Tensor, beta1_power: Tensor, beta2_power: Tensor, lr: Tensor,
    grad: Tensor, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, use_locking: bool = False,
) -> tuple[Tensor, ...]:
    """`ApplyAdamWithAmsgradV2` with fixed decays and `epsilon`; `use_locking` is accepted.

    Example: ``ApplyAdamWithAmsgrad(0.9, 0.999)(var, m, v, vhat, beta1_power, beta2_power, lr, grad)``.
    """
    new: tuple[Tensor, ...] = ApplyAdamWithAmsgradV2.compute(
        var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad
    )
    return new


@step("var", "m")
def ApplyAddSign(
    var: Tensor, m: Tensor, lr: Tensor, alpha: Tensor, sign_decay: Tensor, beta: Tensor, grad: Tensor
) -> tuple[Tensor, ...]:
    """AddSign's step: longer where gradient and mean agree in sign.

    Example: ``ops.ApplyAddSign()(var, m, lr, alpha, sign_decay, beta, grad)``.
    """
    mean = beta * m + (1 - beta) * grad
    agreement = keras.ops.sign(grad) * keras.ops.sign(mean)
    return var - lr * (alpha + sign_decay * agreement) * grad, mean


@step("var", "m")
def ApplyPowerSign(
    var: Tensor, m: Tensor, lr: Tensor, logbase: Tensor, sign_decay: Tensor, beta: Tensor, grad: Tensor
) -> tuple[Tensor, ...]:
    """PowerSign's step: longer where gradient and mean agree in sign, ``exp(logbase * sign_decay * agreement)``.

    Example: ``ops.ApplyPowerSign()(var, m, lr, logbase, sign_decay, beta, grad)``.
    """
    mean = beta * m + (1 - beta) * grad
    agreement = keras.ops.sign(grad) * keras.ops.sign(mean)
    return var - lr * (keras.ops.exp(logbase * sign_decay * agreement) * grad), mean


def soft_threshold(value: TensorLike, rate: TensorLike, l1: TensorLike, l2: TensorLike) -> Tensor:
    """Apply the proximal operator of the L1 and L2 penalties: soft thresholding and shrinkage."""
    magnitude = keras.ops.maximum(keras.ops.abs(value) - rate * l1, 0.0)
    return keras.ops.sign(value) * magnitude / (1 + rate * l2)


@step("var", first_only=True)
def ApplyProximalGradientDescent(
    var: Tensor, alpha: Tensor, l1: Tensor, l2: Tensor, delta: Tensor
) -> tuple[Tensor, ...]:
    """A step, then that of the penalties: ``ops.ApplyProximalGradientDescent()(var, alpha, l1, l2, delta)``."""
    return (soft_threshold(var - alpha * delta, alpha, l1, l2),)


@step("var", "mean_gradient", "mean_square", "moment", first_only=True)
def ApplyCenteredRMSProp(
    var: Tensor, mean_gradient: Tensor, mean_square: Tensor, moment: Tensor, grad: Tensor, learning_rate: Tensor,
    decay: Tensor, momentum: Tensor, epsilon: Tensor, *, use_locking: bool = False,
) -> tuple[Tensor, ...]:
    """RMSProp's step, divided by the standard deviation of the gradients; `use_locking` is accepted.

    Example: ``ops.ApplyCenteredRMSProp()(var, mean_grad, mean_square, moment, grad, lr, decay, momentum, epsilon)``.
    """
    mean = decay * mean_gradient + (1 - decay) * grad
    square = decay * mean_square + (1 - decay) * grad * grad
    velocity = momentum * moment + learning_rate * grad / keras.ops.sqrt(square - mean * mean + epsilon)
    return var - velocity, mean, square, velocity


@step("var", "accum")
def ApplyProximalAdagrad(
    var: Tensor, accum: Tensor, lr: Tensor, l1: Tensor, l2: Tensor, grad: Tensor, *, use_locking: bool = False
) -> tuple[Tensor, ...]:
    """Adagrad's step, then the proximal step of the penalties; `use_locking` is accepted.

    Example: ``ops.ApplyProximalAdagrad()(var, accum, lr, l1, l2, grad)``.
    """
    total = accum + grad * grad
    lr = lr / keras.ops.sqrt(total)
    return soft_threshold(var - lr * grad, lr, l1, l2), total


@step("var", "gradient_accumulator", "gradient_squared_accumulator", first_only=True)
def ApplyAdagradDA(
    var: Tensor, gradient_accumulator: Tensor, gradient_squared_accumulator: Tensor, grad: Tensor, lr: Tensor,
    l1: Tensor, l2: Tensor, global_step: Tensor, *, use_locking: bool = False,
) -> tuple[Tensor, ...]:
    """Adagrad's dual averaging: the weight is computed from the sums of gradients alone; `use_locking` is accepted.

    Example: ``ops.ApplyAdagradDA()(var, sum, squares, grad, lr, l1, l2, global_step)``.
    """
    total, squares = gradient_accumulator + grad, gradient_squared_accumulator + grad * grad
    magnitude = keras.ops.maximum(keras.ops.abs(total) - l1 * global_step, 0.0)
    value = -lr * keras.ops.sign(total) * magnitude / (l2 * global_step * lr + keras.ops.sqrt(squares))
    return value, total, squares


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


@step("var", "accum", "linear", first_only=True)
def ApplyFtrl(
    var: Tensor, accum: Tensor, linear: Tensor, grad: Tensor, lr: Tensor, l1: Tensor, l2: Tensor, lr_power: Tensor, *,
    use_locking: bool = False,
) -> tuple[Tensor, ...]:
    """The step of FTRL, follow the regularized leader; `use_locking` is accepted.

    Example: ``ops.ApplyFtrl()(var, accum, linear, grad, lr, l1, l2, lr_power)``.
    """
    return ftrl(var, accum, linear, grad, lr, l1, l2, lr_power)


def _root_mean_square(x: Tensor) -> Tensor:
    return keras.ops.sqrt(keras.ops.mean(keras.ops.square(x)))


@step("param", "exp_avg", "exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq", first_only=True)
def FusedAdaFactorWithGlobalNorm(
    epsilon: Tensor, clip_threshold: Tensor, beta1: Tensor, beta2: Tensor, weight_decay: Tensor, learning_rate: Tensor,
    gradient: Tensor, param: Tensor, exp_avg: Tensor, exp_avg_sq_row: Tensor, exp_avg_sq_col: Tensor,
    exp_avg_sq: Tensor, global_norm: Tensor, *, enable_scale_parameter: bool = False, enable_first_moment: bool = False,
    enable_weight_decay: bool = False,
) -> tuple[Tensor, ...]:
    """The step of `nn.AdaFactor`, of a gradient divided by `global_norm`; the settings are whether its parts are used.

    `epsilon`: the number added to squares, and the least scale of the parameter.
    """
    grad = gradient / global_norm
    square = grad * grad + epsilon[0]
    if len(param.shape) > 1:
        exp_avg_sq_row = beta2 * exp_avg_sq_row + (1 - beta2) * keras.ops.mean(square, axis=-1)
        exp_avg_sq_col = beta2 * exp_avg_sq_col + (1 - beta2) * keras.ops.mean(square, axis=-2)
        rows = exp_avg_sq_row / keras.ops.mean(exp_avg_sq_row, axis=-1, keepdims=True)
        change = grad * keras.ops.rsqrt(rows)[..., None] * keras.ops.rsqrt(exp_avg_sq_col)[..., None, :]
    else:
        exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * square
        change = grad * keras.ops.rsqrt(exp_avg_sq)
    if enable_scale_parameter:
        learning_rate = learning_rate * keras.ops.maximum(epsilon[1], _root_mean_square(param))
    change = learning_rate * change / keras.ops.maximum(1.0, _root_mean_square(change) / clip_threshold)
    if enable_first_moment:
        change = exp_avg = beta1 * exp_avg + (1 - beta1) * change
    if enable_weight_decay:
        param = param - weight_decay * learning_rate * param
    return param - change, exp_avg, exp_avg_sq_row, exp_avg_sq_col, exp_avg_sq


@as_primitive
def FusedAdaFactor(
    *tensors: Any, enable_scale_parameter: bool = False, enable_first_moment: bool = False,
    enable_weight_decay: bool = False,
) -> Tensor:
    """`FusedAdaFactorWithGlobalNorm` of a gradient as it is, without the norm."""
    settings = (enable_scale_parameter, enable_first_moment, enable_weight_decay)
    new: Tensor = FusedAdaFactorWithGlobalNorm(*settings)(*tensors, 1.0)
    return new
