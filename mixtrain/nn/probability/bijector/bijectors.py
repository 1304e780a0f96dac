"""Bijectors: their parameters and formulas. Parameters are floats, lists or arrays of floats, or Tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from mixtrain import checks, ops
from mixtrain.nn.probability.bijector.bijector import Bijector
from mixtrain.nn.probability.parameters import NOT_NEGATIVE, POSITIVE, stored
from mixtrain.typing import Tensor, TensorLike

# From here on the softplus of a number is the number in float32, and below its negative it is the exponential.
_LARGE: Final = -math.log(float(np.finfo(np.float32).eps)) - 1.0


def formula(compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the method of a formula of a value, which is checked, and of the parameters, cast to its dtype."""

    def call(self: Bijector, value: Tensor) -> Tensor:
        value, own = self._check_value_dtype(value), (getattr(self, f"_{name}") for name in self.parameter_names)
        return compute(value, *(self.cast_param_by_value(value, parameter) for parameter in own))

    return call


def _of_power(exponential: Callable[..., Tensor], other: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the formula that is one of a power of 0, where it is the exponential, and another one of other powers."""
    return formula(lambda x, p: ops.where(p == 0, exponential(x), other(x, ops.where(p == 0, 1.0, p))))


class PowerTransform(Bijector):
    """(1 + `power` * x) ** (1 / `power`) for a `power` of at least 0; for 0, the exponential. `name` is for errors.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.bijector.PowerTransform(0.5).forward(mixtrain.Tensor([2.0])).numpy().round(5).tolist()
        [4.0]
    """

    rules = {"power": NOT_NEGATIVE}
    power = stored("power")

    def __init__(self, power: TensorLike = 0.0, name: str = "PowerTransform") -> None:
        self._start(name, power=power)

    _forward = _of_power(ops.exp, lambda x, p: ops.exp(ops.log1p(x * p) / p))
    _inverse = _of_power(ops.log, lambda y, p: ops.expm1(ops.log(y) * p) / p)
    _forward_log_jacobian = _of_power(lambda x: x, lambda x, p: (1.0 / p - 1.0) * ops.log1p(x * p))
    _inverse_log_jacobian = formula(lambda y, p: (p - 1.0) * ops.log(y))


class Exp(PowerTransform):
    """The exponential. `name` is for errors.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> print(msp.bijector.Exp().forward(mixtrain.Tensor([0.0])))
        [1.]
    """

    def __init__(self, name: str = "Exp") -> None:
        super().__init__(name=name)

    def extend_repr(self) -> str:
        """Return what it computes."""
        return "exp"


class ScalarAffine(Bijector):
    """`scale` * x + `shift`. `name` is for errors.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> print(msp.bijector.ScalarAffine(2.0, 1.0).forward(mixtrain.Tensor([3.0])))
        [7.]
    """

    scale, shift = stored("scale"), stored("shift")

    def __init__(self, scale: TensorLike = 1.0, shift: TensorLike = 0.0, name: str = "ScalarAffine") -> None:
        self._start(name, True, scale=scale, shift=shift)

    _forward = formula(lambda x, scale, shift: scale * x + shift)
    _inverse = formula(lambda y, scale, shift: (y - shift) / scale)
    _forward_log_jacobian = formula(lambda x, scale, shift: ops.log(ops.abs(scale)))
    _inverse_log_jacobian = formula(lambda y, scale, shift: -ops.log(ops.abs(scale)))


def _inverse_softplus(y: Tensor) -> Tensor:
    small, large = y < math.exp(-_LARGE), y > _LARGE
    between = ops.where(ops.logical_or(small, large), 1.0, y)
    inverse = between + ops.log(-ops.expm1(-between))
    return ops.where(small, ops.log(ops.where(small, y, 1.0)), ops.where(large, y, inverse))


class Softplus(Bijector):
    """log(1 + exp(`sharpness` * x)) / `sharpness`. `name` is for errors.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> round(float(msp.bijector.Softplus().forward(mixtrain.Tensor(0.0))), 4)
        0.6931
    """

    sharpness = stored("sharpness")

    def __init__(self, sharpness: TensorLike = 1.0, name: str = "Softplus") -> None:
        self._start(name, sharpness=sharpness)

    _forward = formula(lambda x, k: -ops.logsigmoid(-k * x) / k)
    _inverse = formula(lambda y, k: _inverse_softplus(k * y) / k)
    _forward_log_jacobian = formula(lambda x, k: ops.logsigmoid(k * x))
    _inverse_log_jacobian = formula(lambda y, k: k * y - _inverse_softplus(k * y))


class GumbelCDF(Bijector):
    """The cumulative distribution function of the Gumbel distribution of `loc` and a `scale` above 0.

    `name` is for errors.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> round(float(msp.bijector.GumbelCDF().inverse(mixtrain.Tensor(0.5))), 4)
        0.3665
    """

    rules = {"scale": POSITIVE}
    loc, scale = stored("loc"), stored("scale")

    def __init__(self, loc: TensorLike = 0.0, scale: TensorLike = 1.0, name: str = "GumbelCDF") -> None:
        self._start(name, loc=loc, scale=scale)

    _forward = formula(lambda x, loc, scale: ops.exp(-ops.exp((loc - x) / scale)))
    _inverse = formula(lambda y, loc, scale: loc - scale * ops.log(-ops.log(y)))
    _forward_log_jacobian = formula(
        lambda x, loc, scale: (loc - x) / scale - ops.exp((loc - x) / scale) - ops.log(scale)
    )
    _inverse_log_jacobian = formula(lambda y, loc, scale: ops.log(-scale / (y * ops.log(y))))


class Invert(Bijector):
    """The inverse of a `bijector`; its `name` is "Invert" and that of the bijector, or the given one.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> print(msp.bijector.Invert(msp.bijector.Exp()).forward(mixtrain.Tensor([1.0])))
        [0.]
    """

    bijector = stored("bijector", "The bijector that is inverted.")

    def __init__(self, bijector: Bijector, name: str = "") -> None:
        checks.instance("Invert", "bijector", bijector, Bijector, "Invert(msp.bijector.Exp())")
        name = name or f"Invert{bijector.name}"
        param = {"bijector": bijector, "name": name}
        super().__init__(bijector.is_constant_jacobian, bijector.is_injective, name, bijector.dtype, param)
        self._bijector = bijector
        self._batch_shape, self._is_scalar_batch = bijector.batch_shape, bijector.is_scalar_batch

    def _forward(self, x: Tensor) -> Tensor:
        return self.bijector("inverse", x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.bijector("forward", y)

    def _forward_log_jacobian(self, x: Tensor) -> Tensor:
        return self.bijector("inverse_log_jacobian", x)

    def _inverse_log_jacobian(self, y: Tensor) -> Tensor:
        return self.bijector("forward_log_jacobian", y)
