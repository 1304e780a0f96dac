"""Random numbers of a row: functions of a seed, so that the same seed gives the same numbers on any thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import tensorflow as tf

from mixtrain.typing import Tensor, Tree

# A row's key, a tensor, and the position of a sample, an int: so only samples cost operations, not seeds.
Seed = tuple[Any, int]

_ALGORITHM: Final = "philox"
_FAN: Final = 256


def fold_in(seed: Seed, number: int) -> Seed:
    position = seed[1] * _FAN + number + 1
    return seed[0], (position + 2**63) % 2**64 - 2**63  # Wrapped to int64.


def _pair(seed: Seed) -> Any:
    return tf.stack([tf.constant(number, tf.int64) if isinstance(number, int) else number for number in seed])


def _samples(seed: Seed, shape: tuple[int, ...], dtype: Any) -> Any:
    """Sample like `tf.random.stateless_uniform`, but by one operation instead of several."""
    return tf.raw_ops.StatelessRandomUniform(shape=shape, seed=_pair(seed), dtype=dtype)


def uniform(seed: Seed, low: float = 0.0, high: float = 1.0, shape: tuple[int, ...] = ()) -> Tensor:
    samples = _samples(seed, shape, tf.float32)
    return samples if (low, high) == (0.0, 1.0) else samples * (high - low) + low


def integer(seed: Seed, bound: Tensor | int) -> Tensor:
    sample = _samples(seed, (), tf.float64)
    return tf.minimum(tf.cast(sample * tf.cast(bound, tf.float64), tf.int32), bound - 1)


def bernoulli(seed: Seed, probability: float) -> Tensor:
    return uniform(seed) < probability


def permutation(seed: Seed, count: int) -> Tensor:
    return tf.argsort(uniform(seed, shape=(count,)))


def normal(seed: Seed, deviation: float, shape: tuple[int, ...]) -> Tensor:
    return tf.random.stateless_normal(shape, _pair(seed), stddev=deviation, alg=_ALGORITHM)


def cond(condition: Tensor, yes: Callable[[], Tensor], no: Callable[[], Tensor]) -> Tree:
    if not tf.is_tensor(condition):
        return yes() if condition else no()
    return tf.cond(condition, yes, no)


def switch(index: Any, branches: Sequence[Callable[[], Tensor]]) -> Tensor:
    return tf.switch_case(index, list(branches))
