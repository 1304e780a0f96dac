"""`TransformedDistribution`: a bijector of a distribution, and those that are defined as one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixtrain import checks, ops
from mixtrain.dtype import float32, is_float
from mixtrain.nn.probability.bijector import Bijector, Exp, GumbelCDF, Invert
from mixtrain.nn.probability.distribution.continuous import Normal, Uniform
from mixtrain.nn.probability.distribution.distribution import Distribution
from mixtrain.nn.probability.distribution.family import Family, formula
from mixtrain.nn.probability.parameters import common_shape, stored
from mixtrain.typing import DTypeLike, Tensor, TensorLike


class TransformedDistribution(Distribution):
    """The distribution of ``bijector("forward", x)`` for x from a distribution; ``bijector(distribution)`` is one too.

    Functions take the parameters of the distribution; `mean` needs a bijector of constant Jacobian.

    Args:
        bijector: A `Bijector`, of this package or of the user.
        distribution: A distribution with a float dtype; samples follow its seed.
        seed: As in `Normal`.
        name: As in `Normal`.

    Raises: TypeError: An argument has the wrong type, or the dtype of `distribution` is not a float dtype.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> normal = msp.distribution.Normal(0.0, 1.0)
        >>> log_normal = msp.distribution.TransformedDistribution(msp.bijector.Exp(), normal)
        >>> log_normal.cdf(mixtrain.Tensor([1.0])).numpy().tolist()
        [0.5]
    """

    def __init__(
        self, bijector: Bijector, distribution: Distribution, seed: int | None = None,
        name: str = "transformed_distribution",
    ) -> None:
        where = type(self).__name__
        checks.instance(where, "bijector", bijector, Bijector, "bijector=Exp()")
        checks.instance(where, "distribution", distribution, Distribution, "distribution=Normal()")
        if not is_float(distribution.dtype):
            raise checks.fail_type(where, "distribution must have a float dtype", distribution.dtype, "Normal()")
        param = {"bijector": bijector, "distribution": distribution, "seed": seed, "name": name}
        Distribution.__init__(self, seed, distribution.dtype, name, param)  # Not a family's next in line.
        self._bijector, self._distribution = bijector, distribution
        self._is_linear_transformation = bijector.is_constant_jacobian
        self._is_scalar_batch = distribution.is_scalar_batch and bijector.is_scalar_batch
        self._batch_shape, self.parameter_type = distribution.batch_shape, distribution.parameter_type
        self.default_parameters = distribution.default_parameters
        self.parameter_names = distribution.parameter_names
        shapes = {"bijector": bijector.batch_shape, "distribution": distribution.batch_shape}
        self._broadcast_shape = None if None in shapes.values() else common_shape(where, shapes)

    bijector = stored("bijector", "The bijector.")
    distribution = stored("distribution", "The distribution that is transformed.")
    is_linear_transformation = stored("is_linear_transformation", "Whether the Jacobian of the bijector is constant.")

    def _log_prob(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        log_prob = self.distribution("log_prob", self.bijector("inverse", value), *args, **kwargs)
        # Outside of the support the Jacobian may be infinite, too.
        adjusted = log_prob + self.bijector("inverse_log_jacobian", value)
        return ops.where(log_prob == -math.inf, log_prob, adjusted)

    def _cdf(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.distribution("cdf", self.bijector("inverse", value), *args, **kwargs)

    def _sample(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.bijector("forward", self.distribution("sample", *args, **kwargs))

    def _mean(self, *args: Any, **kwargs: Any) -> Tensor:
        if not self.is_linear_transformation:
            raise checks.fail_value(
                type(self).__name__, "the mean is known for bijectors of constant Jacobian alone", self.bijector.name,
                "the mean of samples, or define _mean in a subclass",
            )
        return self.bijector("forward", self.distribution("mean", *args, **kwargs))


Bijector.transform = TransformedDistribution


class LogNormal(TransformedDistribution, Family, parameters=("loc", "scale")):
    """The distribution of the exponential of a normal one of mean `loc` and standard deviation `scale`.

    `seed`, `dtype` and `name` are as in `Distribution`.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.LogNormal(0.0, 1.0).cdf(mixtrain.Tensor([1.0])).numpy().tolist()
        [0.5]
    """

    def __init__(
        self, loc: TensorLike | None = None, scale: TensorLike | None = None, seed: int | None = 0,
        dtype: DTypeLike = float32, name: str = "LogNormal",
    ) -> None:
        super().__init__(Exp(), Normal(loc, scale, seed, dtype), seed, name)
        self._store(loc=loc, scale=scale)

    _mean = formula(lambda d, loc, scale: ops.exp(loc + 0.5 * ops.square(scale)))
    _mode = formula(lambda d, loc, scale: ops.exp(loc - ops.square(scale)))
    _var = formula(lambda d, loc, scale: ops.expm1(ops.square(scale)) * ops.exp(2.0 * loc + ops.square(scale)))
    _entropy = formula(lambda d, loc, scale: loc + 0.5 + ops.log(scale) + 0.5 * math.log(2 * math.pi))
    _kl_loss = formula(lambda d, dist, loc_b, scale_b, loc_a, scale_a: (
        d.distribution("kl_loss", "Normal", loc_b, scale_b, loc_a, scale_a)
    ))

    def _log_prob(self, value: Tensor, loc: Tensor = None, scale: Tensor = None) -> Tensor:
        return super()._log_prob(value, loc, scale)

    def _cdf(self, value: Tensor, loc: Tensor = None, scale: Tensor = None) -> Tensor:
        value = self._check_value(value, "value")
        inside = ops.where(value > 0, value, 1.0)  # Below 0 the logarithm has no gradient.
        return ops.where(value > 0, super()._cdf(inside, loc, scale), 0.0)

    def _sample(self, shape: tuple[int, ...] = (), loc: Tensor = None, scale: Tensor = None) -> Tensor:
        return super()._sample(shape, loc, scale)


class Gumbel(TransformedDistribution, Family, parameters=("loc", "scale")):
    """The Gumbel distribution of `loc` and `scale`, floats or float arrays that are given at construction alone.

    `seed`, `dtype` and `name` are as in `Distribution`.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.Gumbel(0.0, 1.0).mode().numpy().tolist()
        0.0
    """

    def __init__(
        self, loc: TensorLike, scale: TensorLike, seed: int | None = 0, dtype: DTypeLike = float32, name: str = "Gumbel"
    ) -> None:
        cdf = GumbelCDF(loc, scale)
        super().__init__(Invert(cdf), Uniform(0.0, 1.0, seed, dtype), seed, name)
        self._store(loc=loc, scale=scale)
        self._gumbel_bijector = cdf

    def _shaped(self, value: Tensor) -> Tensor:
        return ops.broadcast_to(value, self.broadcast_shape)

    _mean = formula(lambda d: d.loc + d.scale * np.euler_gamma)
    _mode = formula(lambda d: d._shaped(d.loc))
    _sd = formula(lambda d: d._shaped(d.scale) * (math.pi / math.sqrt(6)))
    _entropy = formula(lambda d: 1.0 + ops.log(d._shaped(d.scale)) + np.euler_gamma)
    _cdf = formula(lambda d, value: d._gumbel_bijector("forward", value))

    @formula
    def _log_prob(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        return -(z + ops.exp(-z)) - ops.log(self.scale)

    @formula
    def _kl_loss(self, dist: str, loc_b: Tensor, scale_b: Tensor) -> Tensor:
        ratio, shift = self.scale / scale_b, (loc_b - self.loc) / scale_b
        return -ops.log(ratio) + np.euler_gamma * (ratio - 1.0) - shift + ops.expm1(shift + ops.lgamma(ratio + 1.0))

    @formula
    def _sample(self, shape: tuple[int, ...]) -> Tensor:
        return super()._sample(shape)
