"""The one seed of a process, and the streams of random numbers drawn from it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, ClassVar

import keras
import numpy as np

from mixtrain import backend, checks


class _Streams:
    """The seed in force and the generator that initial values are drawn from."""

    seed: int | None = None
    generator: np.random.Generator = np.random.default_rng()
    # By who draws and the seed given: an operation and its seed have one stream, as long as the process lives.
    drawing: ClassVar[dict[tuple[str, int], keras.random.SeedGenerator]] = {}


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
    for name, own in _Streams.drawing:
        _start(name, own)


def get_seed() -> int | None:
    """Return the seed that `set_seed` set, or None.

    Example:
        >>> import mixtrain
        >>> mixtrain.set_seed(3)
        >>> mixtrain.get_seed()
        3
    """
    return _Streams.seed


def stream_of(name: str, seed: int = 0) -> keras.random.SeedGenerator:
    """Return the stream that an operation draws from, eagerly and compiled; `set_seed` starts it anew.

    Args:
        name: The operation's name.
        seed: The seed it was given, 0 for none; each has a stream of its own.
    """
    if (name, seed) not in _Streams.drawing:
        with backend.outside_graph():
            _Streams.drawing[name, seed] = keras.random.SeedGenerator(seed=_first_seed(name, seed))
    return _Streams.drawing[name, seed]


def stream_states() -> list[keras.Variable]:
    """Return the variables in which the streams of operations stand."""
    return [stream.state for stream in _Streams.drawing.values()]


def _start(name: str, seed: int) -> None:
    """Put a stream where it stands before its first number."""
    _Streams.drawing[name, seed].state.assign(np.array([_first_seed(name, seed), 0], np.uint32))


def _first_seed(name: str, seed: int) -> int:
    """Return what a stream starts from: by the process's seed, the operation's name and its own seed."""
    process = int(np.random.default_rng().integers(2**31)) if _Streams.seed is None else _Streams.seed
    words = [process % 2**32, seed % 2**32, zlib.crc32(name.encode())]
    return int(np.random.SeedSequence(words).generate_state(1)[0] % 2**31)


def generator() -> np.random.Generator:
    """Return the generator that initial values are drawn from, one after the other."""
    return _Streams.generator


def next_seed() -> int:
    """Return a fresh seed for one consumer (a dropout cell, a shuffle), repeatable under `set_seed`."""
    return int(_Streams.generator.integers(2**31 - 1))


def seed_state() -> dict[str, Any]:
    """Return the seed and where its generator and each operation's stream stand, as plain numbers for a checkpoint."""
    drawing = [
        [name, seed, backend.to_numpy(stream.state).tolist()] for (name, seed), stream in _Streams.drawing.items()
    ]
    return {"seed": _Streams.seed, "generator": _Streams.generator.bit_generator.state, "drawing": drawing}


def restore_seed_state(state: Mapping[str, Any]) -> None:
    """Go on drawing from where `seed_state` was taken; a seed of None leaves the one in force."""
    if state["seed"] is not None:
        _Streams.seed = int(state["seed"])
    _Streams.generator.bit_generator.state = dict(state["generator"])
    places = {(name, seed): place for name, seed, place in state["drawing"]}
    for (name, seed), place in places.items():
        stream_of(name, seed).state.assign(np.array(place, np.uint32))
    if _Streams.seed is not None:
        for name, seed in _Streams.drawing.keys() - places.keys():  # Begun since then.
            _start(name, seed)
