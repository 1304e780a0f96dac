"""The one seed of a process, and the streams of random numbers drawn from it."""

from __future__ import annotations

import keras
import numpy as np

from mixtrain import checks


class _Streams:
    """The seed in force and the generator that initial values are drawn from."""

    seed: int | None = None
    generator: np.random.Generator = np.random.default_rng()


def set_seed(seed: int) -> None:
    """Make initial values, shuffles and dropout repeatable from here on.

    Python's, NumPy's and Keras's own generators are seeded too, as MindSpore seeds NumPy's.

    Args:
        seed: At least 0.

    Raises:
        TypeError: `seed` is not an int.
        ValueError: `seed` is negative.

    Example:
        >>> import mixtrain
        >>> mixtrain.set_seed(0)
    """
    _Streams.seed = checks.integer("set_seed", "seed", seed, at_least=0)
    _Streams.generator = np.random.default_rng(_Streams.seed)
    keras.utils.set_random_seed(_Streams.seed)


def get_seed() -> int | None:
    """Return the seed that `set_seed` set, or None.

    Example:
        >>> import mixtrain
        >>> mixtrain.set_seed(3)
        >>> mixtrain.get_seed()
        3
    """
    return _Streams.seed


def generator() -> np.random.Generator:
    """Return the generator that initial values are drawn from, one after the other."""
    return _Streams.generator


def next_seed() -> int:
    """Return a fresh seed for one consumer (a dropout cell, a shuffle), repeatable under `set_seed`."""
    return int(_Streams.generator.integers(2**31 - 1))
