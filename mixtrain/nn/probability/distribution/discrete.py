"""Discrete distributions: their parameters and formulas."""

from __future__ import annotations

import math
from typing import Final

from mixtrain import checks, ops
from mixtrain.dtype import float32, int8, int16, int32, int64, uint8, uint16, uint32, uint64
from mixtrain.nn.probability.distribution.continuous import open_uniform
from mixtrain.nn.probability.distribution.family import Family, formula
from mixtrain.nn.probability.parameters import FLOATS, ONE, POSITIVE, PROBABILITY
from mixtrain.typing import Tensor, TensorLike

_NUMBERS: Final = (int32, int8, int16, int64, uint8, uint16, uint32, uint64, *FLOATS)


def _information(p: Tensor) -> Tensor:
    return -p * ops.log(p)


class Bernoulli(Family, parameters=("probs",), default=int32):
    """The distribution of 1 with the probability `probs`, else 0; calls name it ``probs1``.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.Bernoulli([0.75]).prob(mixtrain.Tensor([0.0])).numpy().tolist()
        [0.25]
    """

    rules = {"probs": PROBABILITY}
    dtypes = _NUMBERS
    value_dtype = "parameter_type"

    _mean = formula(lambda d, probs1: probs1)
    _mode = formula(lambda d, probs1: ops.cast(probs1 > 0.5, d.dtype))
    _var = formula(lambda d, probs1: probs1 * (1.0 - probs1))
    _entropy = formula(lambda d, probs1: _information(1.0 - probs1) + _information(probs1))
    _cdf = formula(lambda d, value, probs1: ops.where(
        value < 0, 0.0, ops.where(value < 1, (1.0 - probs1) * ops.ones_like(value), 1.0)
    ))
    _kl_loss = formula(lambda d, dist, probs1_b, probs1: (
        probs1 * ops.log(probs1 / probs1_b) + (1.0 - probs1) * ops.log((1.0 - probs1) / (1.0 - probs1_b))
    ))
    _sample = formula(lambda d, shape, probs1: ops.uniform(shape, 0.0, 1.0, d.seed) < probs1)

    @formula
    def _log_prob(self, value: Tensor, probs1: Tensor) -> Tensor:
        smallest = ops.eps(probs1)
        p = ops.clip_by_value(probs1, smallest, 1.0 - smallest)
        return ops.log(p) * value + ops.log(1.0 - p) * (1.0 - value)


def _classes(probs: Tensor) -> Tensor:
    return ops.arange(0, probs.shape[-1], 1, dtype=float32)


def _moment(probs: Tensor, power: int) -> Tensor:
    return ops.sum(_classes(probs) ** power * probs, -1, keepdim=True)


def _whole(value: Tensor) -> Tensor:
    """Return class numbers rounded down, those above -1 to at least 0, with an axis for the classes."""
    below = ops.logical_and(value < 0, value > -1)
    return ops.expand_dims(ops.where(below, 0.0, ops.floor(value)), -1)


class Categorical(Family, parameters=("probs",), default=int32):
    """The distribution of class numbers by the probabilities `probs` (..., classes), which sum to 1.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.Categorical([0.25, 0.75]).prob(mixtrain.Tensor([1])).numpy().round(5).tolist()
        [0.75]
    """

    rules = {"probs": PROBABILITY}
    dtypes = _NUMBERS
    value_dtype = "parameter_type"

    def _store(self, **values: TensorLike | None) -> None:
        super()._store(**values)
        if self.probs is not None:
            if self.probs.ndim == 0:
                raise checks.fail_value("Categorical", "probs must have an axis of classes", (), "[0.2, 0.3, 0.5]")
            ONE.check("Categorical", "probs", self.probs.sum(-1))
            self._is_scalar_batch = self.probs.ndim == 1
            self._broadcast_shape = tuple(self.probs.shape[:-1])

    _mean = formula(lambda d, probs: _moment(probs, 1))
    _mode = formula(lambda d, probs: ops.cast(ops.argmax(probs, -1), d.dtype))
    _var = formula(lambda d, probs: _moment(probs, 2) - ops.square(_moment(probs, 1)))
    _entropy = formula(lambda d, probs: ops.squeeze(ops.sum(_information(probs), -1)))
    _cdf = formula(lambda d, value, probs: ops.sum(ops.where(_classes(probs) <= _whole(value), probs, 0.0), -1))

    @formula
    def _log_prob(self, value: Tensor, probs: Tensor) -> Tensor:
        chosen = _whole(value) == _classes(probs)
        return ops.where(ops.any(chosen, -1), ops.sum(ops.where(chosen, ops.log(probs), 0.0), -1), math.nan)

    @formula
    def _kl_loss(self, dist: str, probs_b: Tensor, probs: Tensor) -> Tensor:
        log_a, log_b = (ops.log_softmax(ops.log(each), -1) for each in (probs, probs_b))
        return ops.squeeze(ops.sum(ops.exp(log_a) * (log_a - log_b), -1))

    @formula
    def _sample(self, shape: tuple[int, ...], probs: Tensor) -> Tensor:
        rows = ops.reshape(probs, (-1, shape[-1]))
        classes = ops.multinomial(rows, math.prod(shape[:-1]) // rows.shape[0], True, self.seed)
        return ops.stop_gradient(ops.reshape(ops.transpose(classes, (1, 0)), shape[:-1]))


class Geometric(Family, parameters=("probs",), default=int32):
    """The distribution of the number of failures before a success of the probability `probs`; calls name it ``probs1``.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.Geometric(0.5).mean().numpy().tolist()
        1.0
    """

    rules = {"probs": PROBABILITY}
    dtypes = _NUMBERS
    value_dtype = "parameter_type"

    _mean = formula(lambda d, probs1: (1.0 - probs1) / probs1)
    _mode = formula(lambda d, probs1: ops.cast(ops.zeros_like(probs1), d.dtype))
    _var = formula(lambda d, probs1: (1.0 - probs1) / ops.square(probs1))
    _entropy = formula(lambda d, probs1: (_information(1.0 - probs1) + _information(probs1)) / probs1)
    _prob = formula(lambda d, value, probs1: ops.where(
        ops.floor(value) < 0, 0.0, ops.exp(ops.log(1.0 - probs1) * ops.floor(value) + ops.log(probs1))
    ))
    _cdf = formula(lambda d, value, probs1: ops.where(
        ops.floor(value) < 0, 0.0, 1.0 - ops.pow(1.0 - probs1, ops.floor(value) + 1.0)
    ))
    _kl_loss = formula(lambda d, dist, probs1_b, probs1: (
        ops.log(probs1 / probs1_b) + (1.0 - probs1) / probs1 * ops.log((1.0 - probs1) / (1.0 - probs1_b))
    ))
    _sample = formula(lambda d, shape, probs1: (
        ops.floor(ops.log(open_uniform(shape, d.seed)) / ops.log(1.0 - probs1))
    ))


class Poisson(Family, parameters=("rate",)):
    """The Poisson distribution of the mean `rate`: a Tensor, array or list, not a number, as in MindSpore.

    Example:
        >>> import mixtrain, mixtrain.nn.probability as msp
        >>> msp.distribution.Poisson([2.5]).mode().numpy().tolist()
        [2.0]
    """

    rules = {"rate": POSITIVE}
    dtypes = _NUMBERS
    refused_numbers = (int, float)

    _mean = _var = formula(lambda d, rate: rate)
    _mode = formula(lambda d, rate: ops.floor(rate))
    _log_prob = formula(lambda d, value, rate: ops.where(
        value < 0, -math.inf, ops.log(rate) * value - ops.lgamma(ops.where(value < 0, 0.0, value) + 1.0) - rate
    ))
    _cdf = formula(lambda d, value, rate: ops.where(
        value < 0, 0.0, 1.0 - ops.igamma(1.0 + ops.floor(ops.maximum(value, 0)), rate)
    ))
    _sample = formula(lambda d, shape, rate: ops.random_poisson((), ops.broadcast_to(rate, shape), d.seed))
