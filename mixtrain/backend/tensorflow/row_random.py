"""Random numbers of a row: drawn from a seed alone, so that the same seed gives the same numbers on any thread."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_ALGORITHM = "philox"
_FAN = 256


def fold(seed: Any, number: int) -> Any:
    """Return the seed of the part `number` (below 255) of what `seed` stands for."""
    return tf.stack([seed[0], seed[1] * _FAN + number + 1])


def uniform(seed: Any, low: float = 0.0, high: float = 1.0, shape: tuple[int, ...] = ()) -> Any:
    """Return float32 numbers from `low` to below `high`; `low` itself where they are equal."""
    return tf.random.stateless_uniform(shape, seed, alg=_ALGORITHM) * (high - low) + low


def integer(seed: Any, bound: Any) -> Any:
    """Return an int32 from 0 to below `bound`, which is at least 1 and may be a tensor."""
    drawn = tf.random.stateless_uniform((), seed, dtype=tf.float64, alg=_ALGORITHM)
    return tf.minimum(tf.cast(drawn * tf.cast(bound, tf.float64), tf.int32), bound - 1)


def happens(seed: Any, probability: float) -> Any:
    """Return True with the given probability: never for 0, always for 1."""
    return uniform(seed) < probability


def permutation(seed: Any, count: int) -> Any:
    """Return the numbers 0 to `count` - 1 in random order."""
    return tf.argsort(uniform(seed, shape=(count,)))


def normal(seed: Any, deviation: float, shape: tuple[int, ...]) -> Any:
    """Return normally distributed float32 numbers around 0."""
    return tf.random.stateless_normal(shape, seed, stddev=deviation, alg=_ALGORITHM)


def either(condition: Any, yes: Any, no: Any) -> Any:
    """Return what one of two functions without arguments makes; sizes of the two may differ."""
    if not tf.is_tensor(condition):
        return yes() if condition else no()
    return tf.cond(condition, yes, no)


def one_of(index: Any, branches: Any) -> Any:
    """Return what the function number `index` makes; sizes may differ, dtypes and ranks may not."""
    return tf.switch_case(index, list(branches))


def poisson(seed: Any, rate: Any, shape: tuple[int, ...]) -> Any:
    """Return float32 numbers of Poisson distributions whose means, `rate`, are the last axes of `shape`."""
    return tf.random.stateless_poisson(shape, tf.cast(seed, tf.int64), rate, dtype=tf.float32)
