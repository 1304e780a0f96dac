"""`Generator`: a stream of random numbers of a script's own, and functions of the process's stream."""

from __future__ import annotations

import json
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import int64
from mixtrain.seed import get_seed, new_stream, restore_seed_state, seed_state, set_seed, stream_of
from mixtrain.typing import Tensor, TensorLike


class Generator:
    """A stream of random numbers, for the methods of tensors that take ``generator=``; compiled code draws on, too.

    Example:
        >>> import mixtrain
        >>> generator = mixtrain.Generator()
        >>> generator.manual_seed(5).initial_seed()
        5
    """

    def __init__(self) -> None:
        self._initial_seed = 0
        self._stream = new_stream(0)

    @property
    def stream(self) -> keras.random.SeedGenerator:
        """The stream that operations draw from."""
        return self._stream

    def manual_seed(self, seed: int) -> Generator:
        """Restart from a seed, an int of at least 0; return the generator."""
        self._initial_seed = checks.integer("Generator.manual_seed", "seed", seed, at_least=0)
        self._place(0)
        return self

    def seed(self) -> int:
        """Restart from a seed of the operating system; return the seed."""
        number = int(np.random.default_rng().integers(2**32))
        self.manual_seed(number)
        return number

    def initial_seed(self) -> int | None:
        """Return the seed that the generator started from."""
        return self._initial_seed

    def get_state(self) -> Tensor:
        """Return the state as a uint8 Tensor, for `set_state`."""
        return _pack({"seed": self._initial_seed, "drawn": int(backend.to_numpy(self.stream.state)[1])})

    def set_state(self, state: TensorLike) -> None:
        """Restore the state that `get_state` returned."""
        values = _unpack(state)
        self._initial_seed = values["seed"]
        self._place(values["drawn"])

    def __reduce__(self) -> str | tuple[Any, ...]:
        # A copy draws the same numbers from a stream of its own, which compiled code finds, too.
        return _copied, (self.get_state(),)

    def _place(self, drawn: int) -> None:
        self.stream.state.assign(np.array([self._initial_seed % 2**32, drawn], np.uint32))

    def _step(self, step: TensorLike) -> tuple[Tensor, Tensor]:
        """Return the seed and how many numbers were drawn, and skip `step` numbers."""
        state = self.stream.state
        seed, drawn = map(backend.public_tensor, keras.ops.unstack(backend.to_tensor(state.value, int64)))
        state.assign(state.value + keras.ops.cast(keras.ops.stack([0, step]), state.dtype))
        return seed, drawn


def _copied(state: Tensor) -> Generator:
    generator = Generator()
    generator.set_state(state)
    return generator


class _ProcessGenerator(Generator):
    """The generator of the process: its seed is that of `set_seed`, and its state that of all streams.

    Example: ``x.uniform(generator=default_generator)``.
    """

    def __init__(self) -> None:
        pass

    @property
    def stream(self) -> keras.random.SeedGenerator:
        return stream_of("default_generator")

    def manual_seed(self, seed: int) -> Generator:
        set_seed(seed)
        return self

    def initial_seed(self) -> int | None:
        return get_seed()

    def get_state(self) -> Tensor:
        _ = self.stream  # So that it is part of the state.
        return _pack(seed_state())

    def set_state(self, state: TensorLike) -> None:
        restore_seed_state(_unpack(state))

    def __reduce__(self) -> str:
        return "default_generator"


def _pack(state: dict[str, Any]) -> Tensor:
    return backend.public_tensor(backend.to_tensor(np.frombuffer(json.dumps(state).encode(), np.uint8)))


def _unpack(state: TensorLike) -> dict[str, Any]:
    try:
        values = json.loads(backend.to_numpy(state).astype(np.uint8).tobytes())
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise RuntimeError(str(checks.fail_value(
            "Generator.set_state", "state must be one that get_state returned", state, "generator.get_state()"
        )))
    return values


default_generator: Final = _ProcessGenerator()


def manual_seed(seed: int) -> Generator:
    """Alias of `set_seed`; return the process's generator."""
    return default_generator.manual_seed(seed)


def initial_seed() -> int | None:
    """Return the seed that was set, or None."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the process's random numbers as a uint8 Tensor, for `set_rng_state`.

    Example: ``state = mixtrain.get_rng_state()``.
    """
    return default_generator.get_state()


def set_rng_state(state: TensorLike) -> None:
    """Restore the state that `get_rng_state` returned.

    Example: ``mixtrain.set_rng_state(state)``.
    """
    default_generator.set_state(state)
