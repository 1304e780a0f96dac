"""Random numbers of a row: functions of a seed, so that the same seed gives the same numbers on any thread."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.data_backend.jax.array_namespace import is_traced, seed_words, space
from mixtrain.data_backend.jax.requirements import collected_in_branches
from mixtrain.typing import Tensor, Tree

_FAN = 8  # Bits per part: `fold` takes numbers below 2**8 - 1.


def fold_in(seed: Any, number: int) -> Tensor:
    """A pair of ints is the seed of a whole row."""
    xp, seed = space(seed_words(np.array(seed)) if isinstance(seed, tuple) else seed)
    low, high = seed[2:3], seed[3:4]
    shift, rest = np.uint32(_FAN), np.uint32(32 - _FAN)
    return xp.concatenate([seed[:2], (low << shift) | np.uint32(number + 1), (high << shift) | (low >> rest)])


def uniform(seed: Any, low: float = 0.0, high: float = 1.0, shape: tuple[int, ...] = ()) -> Tensor:
    (_, samples) = space(_uniform(seed, shape))
    return samples * np.float32(high - low) + np.float32(low)


def integer(seed: Any, bound: Tensor | int) -> Tensor:
    xp, samples, bound = space(_uniform(seed, ()), bound)
    bound = xp.asarray(bound, np.int32)
    return xp.minimum((samples * bound.astype(np.float32)).astype(np.int32), bound - 1)


def bernoulli(seed: Any, probability: float) -> Tensor:
    return uniform(seed) < probability


def permutation(seed: Any, count: int) -> Tensor:
    xp, samples = space(_uniform(seed, (count,)))
    return xp.argsort(samples).astype(np.int32)


def normal(seed: Any, deviation: float, shape: tuple[int, ...]) -> Tensor:
    return _normal(seed, tuple(shape)) * deviation


def cond(condition: Tensor, yes: Callable[[], Tensor], no: Callable[[], Tensor]) -> Tree:
    if not is_traced(condition):
        return yes() if condition else no()
    return collected_in_branches(lambda branches: jax.lax.cond(condition, *branches), [yes, no])


def switch(index: Any, branches: Sequence[Callable[[], Tensor]]) -> Tensor:
    if not is_traced(index):
        return branches[int(index)]()
    return collected_in_branches(lambda branches: jax.lax.switch(index, branches), branches)


@functools.partial(jax.jit, static_argnums=1)
def _uniform(seed: Any, shape: tuple[int, ...]) -> Tensor:
    return jax.random.uniform(_key(seed), shape, jnp.float32)


@functools.partial(jax.jit, static_argnums=1)
def _normal(seed: Any, shape: tuple[int, ...]) -> Tensor:
    return jax.random.normal(_key(seed), shape, jnp.float32)


def _key(seed: Any) -> Tensor:
    seed = jnp.asarray(seed, jnp.uint32)
    key = jax.random.wrap_key_data(seed[:2], impl="threefry2x32")
    return jax.random.fold_in(jax.random.fold_in(key, seed[2]), seed[3])
