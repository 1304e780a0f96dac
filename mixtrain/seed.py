"""The seed of the process, and the random streams derived from it."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import weakref
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.lazy_names import serve_names

# Between the name of an operation and what tells the object apart that draws, in the names of streams.
_MARK: Final = "#"
_drawing_as: contextvars.ContextVar[str] = contextvars.ContextVar("drawing_as", default="")


class _Streams:
    """The current seed, the generator of initial values, and the streams of operations."""

    seed: int | None = None
    generator: np.random.Generator = np.random.default_rng()
    # By the name and the seed of an operation; a stream lives as long as the process.
    of_operations: ClassVar[dict[tuple[str, int], keras.random.SeedGenerator]] = {}
    # Those of scripts' own generators.
    of_generators: ClassVar[weakref.WeakSet[keras.random.SeedGenerator]] = weakref.WeakSet()
    # Restored states of streams that no operation has asked for yet: most are made when they are needed.
    restored: ClassVar[dict[tuple[str, int], list[int]]] = {}
    # The marks of objects that draw from streams of their own.
    marks: ClassVar[weakref.WeakKeyDictionary[Any, str]] = weakref.WeakKeyDictionary()


def set_seed(seed: int) -> None:
    """Make initial values, shuffles and dropout reproducible from here on.

    Python's, NumPy's and Keras's own generators are seeded too, as MindSpore seeds NumPy's.

    Args:
        seed: At least 0.

    Raises:
        TypeError: `seed` is not an int.
        ValueError: `seed` is negative, or 2**32 or more.

    Example:
        >>> import mixtrain
        >>> mixtrain.set_seed(0)
    """
    seed = checks.integer("set_seed", "seed", seed, at_least=0)
    if seed >= 2**32:  # The limit of NumPy's global generator.
        raise checks.fail_value("set_seed", "seed must be below 2**32", seed, "set_seed(0)")
    _Streams.seed = seed
    _Streams.generator = np.random.default_rng(_Streams.seed)
    keras.utils.set_random_seed(_Streams.seed)
    _Streams.restored.clear()
    for name, operation_seed in _Streams.of_operations:
        if _MARK not in name:  # An object's streams follow its own seed alone.
            _start(name, operation_seed)


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
    """Return the random stream of an operation, eager or compiled; `set_seed` restarts it.

    `name`: The operation's name. `seed`: The operation's own seed, 0 for none; each has a stream of its own.
    """
    name += _drawing_as.get() if seed else ""
    if (name, seed) not in _Streams.of_operations:
        with backend.eager_scope():
            stream = keras.random.SeedGenerator(seed=_first_seed(name, seed))
            if (name, seed) in _Streams.restored:
                stream.state.assign(np.array(_Streams.restored.pop((name, seed)), np.uint32))
            _Streams.of_operations[name, seed] = stream
    return _Streams.of_operations[name, seed]


def new_stream(seed: int) -> keras.random.SeedGenerator:
    """Return a random stream of a script's own, which `set_seed` leaves alone."""
    if backend.is_tracing():  # Each trace would make another one.
        raise RuntimeError(
            "Generator: expected to be made outside compiled code; got one inside. Write Generator() before the call."
        )
    with backend.eager_scope():
        stream = keras.random.SeedGenerator(seed)
    _Streams.of_generators.add(stream)
    return stream


@contextlib.contextmanager
def drawing_as(owner: object, text: str) -> Iterator[None]:
    """Let operations inside draw from streams of an object, each of which begins where its own seed says.

    `text`: What names the object's kind and seeds; several such objects at a time are numbered as they first draw.
    """
    mark = _Streams.marks.get(owner)
    if mark is None:
        used = set(_Streams.marks.values())
        mark = next(mark for n in itertools.count() if (mark := f"{_MARK}{text}{n or ''}") not in used)
        _Streams.marks[owner] = mark
        weakref.finalize(owner, _forget, mark).atexit = False
    token = _drawing_as.set(mark)
    try:
        yield
    finally:
        _drawing_as.reset(token)


def _forget(mark: str) -> None:
    """Forget the streams of an object that is gone."""
    for key in [key for key in _Streams.of_operations if key[0].endswith(mark)]:
        del _Streams.of_operations[key]


def stream_states() -> list[keras.Variable]:
    """Return the state variables of the streams of operations and generators."""
    return [stream.state for stream in (*_Streams.of_operations.values(), *_Streams.of_generators)]


@contextlib.contextmanager
def unmoved_streams() -> Iterator[None]:
    """Put the streams of operations and generators back where they were before the code inside."""
    before = [(state, backend.snapshot(state)) for state in stream_states()]
    known = {id(state) for state, _ in before}
    try:
        yield
    finally:
        for state, value in before:
            state.assign(value)
        for state in stream_states():
            if id(state) not in known:  # A new stream begins with no number drawn.
                state.assign(state.value * np.array([1, 0], keras.backend.standardize_dtype(state.dtype)))


def _start(name: str, seed: int) -> None:
    """Reset a stream to its start."""
    _Streams.of_operations[name, seed].state.assign(np.array([_first_seed(name, seed), 0], np.uint32))


def _first_seed(name: str, seed: int) -> int:
    """Derive the initial seed of a stream from the process's seed, the operation's name and its own seed.

    A seed of its own is enough for the same numbers in each process; for an object's streams it alone counts.
    """
    name, mark, _ = name.partition(_MARK)
    process = 0 if mark else _Streams.seed
    if process is None:
        process = 0 if seed else int(np.random.default_rng().integers(2**31))
    entropy = [process % 2**32, seed % 2**32, zlib.crc32(name.encode())]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] % 2**31)


def generator() -> np.random.Generator:
    """Return the generator of whatever `set_seed` alone makes reproducible."""
    return _Streams.generator


def initial_values() -> np.random.Generator:
    """Return the generator of one initial value, after a draw from NumPy's own, as MindSpore's initial values take one.

    What a script draws from NumPy afterwards is what it draws there. Without `set_seed` the draw is the seed of the
    initial value, which `numpy.random.seed` makes reproducible.
    """
    drawn = np.random.randint(1, 1 << 63, dtype=np.int64)
    return np.random.default_rng(drawn) if _Streams.seed is None else _Streams.generator


def next_seed() -> int:
    """Return a new seed for one consumer (a dropout cell, a shuffle), reproducible by `set_seed`."""
    return int(_Streams.generator.integers(2**31 - 1))


def seed_state() -> dict[str, Any]:
    """Return the seed and the states of all generators, as plain numbers for a checkpoint."""
    streams = [
        [name, seed, backend.to_numpy(stream.state).tolist()] for (name, seed), stream in _Streams.of_operations.items()
    ]
    streams += [[name, seed, value] for (name, seed), value in _Streams.restored.items()]
    return {"seed": _Streams.seed, "generator": _Streams.generator.bit_generator.state, "drawing": streams}


def restore_seed_state(state: Mapping[str, Any]) -> None:
    """Restore the state that `seed_state` returned; a seed of None keeps the current one."""
    if state["seed"] is not None:
        _Streams.seed = int(state["seed"])
    _Streams.generator.bit_generator.state = dict(state["generator"])
    _Streams.restored = {(name, seed): value for name, seed, value in state["drawing"]}
    for (name, seed), stream in _Streams.of_operations.items():
        if (name, seed) in _Streams.restored:
            stream.state.assign(np.array(_Streams.restored.pop((name, seed)), np.uint32))
        elif _Streams.seed is not None:  # Created since then.
            _start(name, seed)


serve_names(__name__)
