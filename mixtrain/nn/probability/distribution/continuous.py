"""Continuous distributions: their parameters and formulas."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from mixtrain import checks, ops
from mixtrain.common.tensor import Tensor as Constant
from mixtrain.dtype import float32
from mixtrain.nn.probability.distribution.family import Family, formula
from mixtrain.nn.probability.parameters import POSITIVE
from mixtrain.typing import Tensor, TensorLike

# The lower bound of uniform samples whose logarithm is taken: the smallest normal float32.
_TINY: Final = float(np.finfo(np.float32).tiny)


def open_uniform(shape: tuple[int, ...], seed: int) -> Tensor:
    """Sample float32 numbers of `shape` uniformly from (0, 1)."""
    return ops.uniform(shape, _TINY, 1.0, seed)


def _gamma(shape: tuple[int, ...], concentration: Tensor, seed: int) -> Tensor:
    return ops.random_gamma((), ops.broadcast_to(concentration, shape), seed)


def _log_beta(a: Tensor, b: Tensor) -> Tensor:
    return ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(a + b)


class Normal(Family, parameters=("mean", "sd")):
    """The normal distribution of `mean` and `sd`, which is above 0.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> normal = msp.distribution.Normal(0.0, 1.0, seed=1)
        >>> normal.log_prob(mixtrain.Tensor([0.0])).shape, normal.sample((2, 3)).shape
        ((1,), (2, 3))
    """

    stored_as = "_{}_value"
    labels = {"sd": "standard deviation"}
    rules = {"sd": POSITIVE}

    _mean = _mode = formula(lambda d, mean, sd: mean)
    _sd = formula(lambda d, mean, sd: sd)
    # Here and below, a constant that is a float32 Tensor makes the result of halves float32, as in MindSpore.
    _entropy = formula(lambda d, mean, sd: ops.log(sd) + Constant(0.5 * math.log(2 * math.pi * math.e), float32))
    _log_prob = formula(lambda d, value, mean, sd: (
        -0.5 * ops.square((value - mean) / sd) - ops.log(sd) - 0.5 * math.log(2 * math.pi)
    ))
    _cdf = formula(lambda d, value, mean, sd: 0.5 * (1.0 + ops.erf((value - mean) / (sd * math.sqrt(2)))))
    _sample = formula(lambda d, shape, mean, sd: ops.normal(shape, mean, sd, d.seed))

    @formula
    def _kl_loss(self, dist: str, mean_b: Tensor, sd_b: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        log_ratio = ops.log(sd) - ops.log(sd_b)
        return 0.5 * (ops.square((mean - mean_b) / sd_b) + ops.expm1(2.0 * log_ratio)) - log_ratio


class HalfNormal(Family, parameters=("mean", "sd")):
    """A normal distribution of `mean` and `sd` without negative values: `prob` and `log_prob` alone.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.HalfNormal(0.0, 1.0).prob(mixtrain.Tensor([-1.0])).numpy().tolist()
        [0.0]
    """

    stored_as = "_{}_value"
    rules = {"sd": POSITIVE}

    _prob = formula(lambda d, value, mean, sd: (
        math.sqrt(2 / math.pi) / sd * ops.exp(-0.5 * ops.square((value - mean) / sd)) * ops.cast(value >= 0, d.dtype)
    ))


class StudentT(Family, parameters=("df", "mean", "sd")):
    """Student's t distribution of `df` degrees of freedom, location `mean` and scale `sd`: `prob` and `log_prob` alone.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.StudentT(3.0, 0.0, 1.0).log_prob(mixtrain.Tensor([0.5])).shape
        (1,)
    """

    stored_as = "_{}_value"
    rules = {"sd": POSITIVE, "df": POSITIVE}

    @formula
    def _log_prob(self, value: Tensor, df: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        normalization = ops.log(sd) + 0.5 * ops.log(df) + 0.5 * math.log(math.pi)
        normalization = normalization + ops.lgamma(0.5 * df) - ops.lgamma(0.5 * (df + 1.0))
        return -0.5 * (df + 1.0) * ops.log1p(ops.square((value - mean) / sd) / df) - normalization


class Laplace(Family, parameters=("mean", "sd")):
    """The Laplace distribution of `mean` and scale `sd`, not its standard deviation: `prob` and `log_prob` alone.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.Laplace(0.0, 1.0).prob(mixtrain.Tensor([0.0])).numpy().tolist()
        [0.5]
    """

    stored_as = "_{}_value"
    rules = {"sd": POSITIVE}

    _log_prob = formula(lambda d, value, mean, sd: -ops.abs((value - mean) / sd) - ops.log(2.0 * sd))


class Cauchy(Family, parameters=("loc", "scale")):
    """The Cauchy distribution of `loc` and `scale`; `mean`, `sd` and `var`, which it lacks, raise a ValueError.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.Cauchy(0.0, 1.0).cdf(mixtrain.Tensor([0.0])).numpy().tolist()
        [0.5]
    """

    labels = {"loc": "location"}
    rules = {"scale": POSITIVE}

    def _mean(self, *args: Any, **kwargs: Any) -> Tensor:
        raise checks.fail_value("Cauchy", "mean, sd and var are undefined for this distribution", self.name, "mode()")

    _sd = _var = _mean
    _mode = formula(lambda d, loc, scale: loc)
    _entropy = formula(lambda d, loc, scale: ops.log(scale) + math.log(4 * math.pi))
    _log_prob = formula(lambda d, value, loc, scale: (
        -ops.log1p(ops.square((value - loc) / scale)) - ops.log(math.pi * scale)
    ))
    _cdf = formula(lambda d, value, loc, scale: ops.atan((value - loc) / scale) / math.pi + 0.5)
    _log_cdf = formula(lambda d, value, loc, scale: (
        ops.log1p(2.0 * ops.atan((value - loc) / scale) / math.pi) - Constant(math.log(2), float32)
    ))
    _kl_loss = formula(lambda d, dist, loc_b, scale_b, loc_a, scale_a: (
        ops.log(ops.square(scale_a + scale_b) + ops.square(loc_a - loc_b)) - Constant(math.log(4), float32)
        - ops.log(scale_a) - ops.log(scale_b)
    ))
    _sample = formula(lambda d, shape, loc, scale: (
        loc + scale * ops.tan(math.pi * (open_uniform(shape, d.seed) - 0.5))
    ))


class Logistic(Family, parameters=("loc", "scale")):
    """The logistic distribution of `loc` and `scale`.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.Logistic(0.0, 1.0).cdf(mixtrain.Tensor([0.0])).numpy().tolist()
        [0.5]
    """

    labels = {"loc": "location"}
    rules = {"scale": POSITIVE}

    _mean = _mode = formula(lambda d, loc, scale: loc)
    _sd = formula(lambda d, loc, scale: scale * (math.pi / math.sqrt(3)))
    _entropy = formula(lambda d, loc, scale: ops.log(scale) + 2.0)
    _cdf = formula(lambda d, value, loc, scale: ops.sigmoid((value - loc) / scale))
    _log_cdf = formula(lambda d, value, loc, scale: ops.logsigmoid((value - loc) / scale))
    _survival_function = formula(lambda d, value, loc, scale: ops.sigmoid((loc - value) / scale))
    _log_survival = formula(lambda d, value, loc, scale: ops.logsigmoid((loc - value) / scale))

    @formula
    def _log_prob(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        z = (value - loc) / scale
        return 2.0 * ops.logsigmoid(z) - z - ops.log(scale)

    @formula
    def _sample(self, shape: tuple[int, ...], loc: Tensor, scale: Tensor) -> Tensor:
        uniform = open_uniform(shape, self.seed)
        return (ops.log(uniform) - ops.log1p(-uniform)) * scale + loc


class Uniform(Family, parameters=("low", "high")):
    """The uniform distribution from `low` to `high`.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.Uniform(0.0, 2.0).prob(mixtrain.Tensor([1.0, 3.0])).numpy().tolist()
        [0.5, 0.0]
    """

    def _store(self, **values: TensorLike | None) -> None:
        super()._store(**values)
        if self.low is not None and self.high is not None:
            POSITIVE.check("Uniform", "high - low", self.high - self.low)

    _mean = formula(lambda d, low, high: (low + high) / 2.0)
    _var = formula(lambda d, low, high: ops.square(high - low) / 12.0)
    _entropy = formula(lambda d, low, high: ops.log(high - low))
    _prob = formula(lambda d, value, low, high: ops.where(
        ops.logical_and(value >= low, value <= high), ops.exp(-ops.log(high - low)) * ops.ones_like(value), 0.0
    ))
    _cdf = formula(lambda d, value, low, high: ops.where(
        value < low, 0.0, ops.where(value < high, (value - low) / (high - low), 1.0)
    ))
    _kl_loss = formula(lambda d, dist, low_b, high_b, low, high: ops.where(
        ops.logical_and(low_b <= low, high <= high_b), ops.log(high_b - low_b) - ops.log(high - low), math.inf
    ))
    _sample = formula(lambda d, shape, low, high: (high - low) * ops.uniform(shape, 0.0, 1.0, d.seed) + low)


class Exponential(Family, parameters=("rate",)):
    """The exponential distribution of `rate`.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.Exponential(0.5).mean().numpy().tolist()
        2.0
    """

    rules = {"rate": POSITIVE}

    _mean = _sd = formula(lambda d, rate: 1.0 / rate)
    _mode = formula(lambda d, rate: ops.cast(ops.zeros_like(rate), d.dtype))
    _entropy = formula(lambda d, rate: 1.0 - ops.log(rate))
    _log_prob = formula(lambda d, value, rate: ops.where(value < 0, -math.inf, ops.log(rate) - rate * value))
    _cdf = formula(lambda d, value, rate: ops.where(value < 0, 0.0, 1.0 - ops.exp(-rate * value)))
    _log_survival = formula(lambda d, value, rate: ops.where(value < 0, 0.0, -rate * value))
    _kl_loss = formula(lambda d, dist, rate_b, rate: ops.log(rate) - ops.log(rate_b) + rate_b / rate - 1.0)
    _sample = formula(lambda d, shape, rate: -ops.log(open_uniform(shape, d.seed)) / rate)


class Gamma(Family, parameters=("concentration", "rate")):
    """The gamma distribution of `concentration` and `rate`: Tensors, arrays or lists, not numbers, as in MindSpore.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.Gamma([3.0], [2.0]).mean().numpy().tolist()
        [1.5]
    """

    rules = {"concentration": POSITIVE, "rate": POSITIVE}
    refused_numbers = (int, float)

    _mean = formula(lambda d, concentration, rate: concentration / rate)
    _mode = formula(lambda d, concentration, rate: ops.where(concentration > 1, (concentration - 1.0) / rate, math.nan))
    _sd = formula(lambda d, concentration, rate: ops.sqrt(concentration) / rate)
    _var = formula(lambda d, concentration, rate: concentration / ops.square(rate))
    _entropy = formula(lambda d, concentration, rate: (
        concentration - ops.log(rate) + ops.lgamma(concentration) + (1.0 - concentration) * ops.digamma(concentration)
    ))
    _log_prob = formula(lambda d, value, concentration, rate: (
        (concentration - 1.0) * ops.log(value) - rate * value + concentration * ops.log(rate)
        - ops.lgamma(concentration)
    ))
    _cdf = formula(lambda d, value, concentration, rate: ops.igamma(concentration, rate * value))
    _sample = formula(lambda d, shape, concentration, rate: _gamma(shape, concentration, d.seed) / rate)

    @formula
    def _kl_loss(
        self, dist: str, concentration_b: Tensor, rate_b: Tensor, concentration_a: Tensor, rate_a: Tensor
    ) -> Tensor:
        a, b = concentration_a, concentration_b
        rates = b * (ops.log(rate_a) - ops.log(rate_b)) + a * (rate_b / rate_a - 1.0)
        return (a - b) * ops.digamma(a) + ops.lgamma(b) - ops.lgamma(a) + rates


class Beta(Family, parameters=("concentration1", "concentration0")):
    """The beta distribution: `concentration1` - 1 is the power of the value, `concentration0` - 1 that of 1 minus it.

    As in MindSpore, neither may be a float.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.Beta([3.0], [1.0]).mean().numpy().tolist()
        [0.75]
    """

    rules = {"concentration1": POSITIVE, "concentration0": POSITIVE}
    refused_numbers = (float,)

    _mean = formula(lambda d, concentration1, concentration0: concentration1 / (concentration1 + concentration0))
    _mode = formula(lambda d, concentration1, concentration0: ops.where(
        ops.logical_and(concentration1 > 1, concentration0 > 1),
        (concentration1 - 1.0) / (concentration1 + concentration0 - 2.0), Constant(math.nan, d.dtype),
    ))
    _log_prob = formula(lambda d, value, concentration1, concentration0: (
        (concentration1 - 1.0) * ops.log(value) + (concentration0 - 1.0) * ops.log1p(-value)
        - _log_beta(concentration1, concentration0)
    ))

    @formula
    def _var(self, concentration1: Tensor, concentration0: Tensor) -> Tensor:
        total = concentration1 + concentration0
        return concentration1 * concentration0 / (ops.square(total) * (total + 1.0))

    @formula
    def _entropy(self, concentration1: Tensor, concentration0: Tensor) -> Tensor:
        a, b = concentration1, concentration0
        slopes = (a - 1.0) * ops.digamma(a) + (b - 1.0) * ops.digamma(b)
        return _log_beta(a, b) - slopes + (a + b - 2.0) * ops.digamma(a + b)

    @formula
    def _kl_loss(
        self, dist: str, concentration1_b: Tensor, concentration0_b: Tensor, concentration1_a: Tensor,
        concentration0_a: Tensor,
    ) -> Tensor:
        a, b, a_b, b_b = concentration1_a, concentration0_a, concentration1_b, concentration0_b
        slopes = ops.digamma(a) * (a_b - a) + ops.digamma(b) * (b_b - b)
        return _log_beta(a_b, b_b) - _log_beta(a, b) - slopes + ops.digamma(a + b) * (a_b + b_b - a - b)

    @formula
    def _sample(self, shape: tuple[int, ...], concentration1: Tensor, concentration0: Tensor) -> Tensor:
        one, zero = (_gamma(shape, each, self.seed) for each in (concentration1, concentration0))
        return one / (one + zero)
