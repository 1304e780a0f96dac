"""`Generator`: a stream of random numbers of a script's own, and functions of the process's stream."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from mixtrain import backend, checks
from mixtrain.seed import get_seed, restore_seed_state, seed_state, set_seed
from mixtrain.typing import Tensor, TensorLike


class Generator:
    """A stream of random numbers, for the methods of tensors that take ``generator=``.

    Example:
        >>> import mixtrain
        >>> generator = mixtrain.Generator()
        >>> generator.manual_seed(5).initial_seed()
        5
    """

    def __init__(self) -> None:
        self._initial_seed = 0
        self._rng = np.random.default_rng(0)

    def manual_seed(self, seed: int) -> Generator:
        """Restart from a seed, an int of at least 0; return the generator."""
        self._initial_seed = checks.integer("Generator.manual_seed", "seed", seed, at_least=0)
        self._rng = np.random.default_rng(self._initial_seed)
        return self

    def seed(self) -> int:
        """Restart from a seed of the operating system; return the seed."""
        return self.manual_seed(int(np.random.default_rng().integers(2**32))).initial_seed()

    def initial_seed(self) -> int:
        """Return the seed that the generator started from."""
        return self._initial_seed

    def next_seed(self) -> int:
        """Return a seed for one operation, a new one each time."""
        return int(self._rng.integers(2**31 - 1))

    def get_state(self) -> Tensor:
        """Return the state as a uint8 Tensor, for `set_state`."""
        return _pack({"first": self._initial_seed, "drawing": self._rng.bit_generator.state})

    def set_state(self, state: TensorLike) -> None:
        """Restore the state that `get_state` returned."""
        values = _unpack(state)
        self._initial_seed = values["first"]
        self._rng.bit_generator.state = values["drawing"]


def _pack(state: dict[str, Any]) -> Tensor:
    return backend.public_tensor(backend.to_tensor(np.frombuffer(json.dumps(state).encode(), np.uint8)))


def _unpack(state: TensorLike) -> dict[str, Any]:
    return json.loads(backend.to_numpy(state).astype(np.uint8).tobytes())


def manual_seed(seed: int) -> None:
    """Alias of `set_seed`."""
    set_seed(seed)


def initial_seed() -> int | None:
    """Return the seed that was set, or None."""
    return get_seed()


def get_rng_state() -> Tensor:
    """Return the state of the process's random numbers as a uint8 Tensor, for `set_rng_state`.

    Example: ``state = mixtrain.get_rng_state()``.
    """
    return _pack(seed_state())


def set_rng_state(state: TensorLike) -> None:
    """Restore the state that `get_rng_state` returned.

    Example: ``mixtrain.set_rng_state(state)``.
    """
    restore_seed_state(_unpack(state))
