"""`Generator`: a stream of random numbers that a script holds, and the functions of the process's own."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from mixtrain import backend, checks
from mixtrain.seed import get_seed, restore_seed_state, seed_state, set_seed


class Generator:
    """A stream of random numbers, for the methods of tensors that take ``generator=``.

    Example:
        >>> import mixtrain
        >>> generator = mixtrain.Generator()
        >>> generator.manual_seed(5).initial_seed()
        5

    Source: MindSpore, `mindspore.Generator`.
    """

    def __init__(self) -> None:
        self._first = 0
        self._drawing = np.random.default_rng(0)

    def manual_seed(self, seed: int) -> Generator:
        """Start anew from a seed, an int of at least 0; return the generator."""
        self._first = checks.integer("Generator.manual_seed", "seed", seed, at_least=0)
        self._drawing = np.random.default_rng(self._first)
        return self

    def seed(self) -> int:
        """Start anew from a seed of the system's; return it."""
        return self.manual_seed(int(np.random.default_rng().integers(2**32))).initial_seed()

    def initial_seed(self) -> int:
        """Return the seed that it started from."""
        return self._first

    def next_seed(self) -> int:
        """Return the seed of one operation's numbers, another each time."""
        return int(self._drawing.integers(2**31 - 1))

    def get_state(self) -> Any:
        """Return where it stands, as a uint8 Tensor for `set_state`."""
        return _packed({"first": self._first, "drawing": self._drawing.bit_generator.state})

    def set_state(self, state: Any) -> None:
        """Go on from where `get_state` was taken."""
        found = _unpacked(state)
        self._first = found["first"]
        self._drawing.bit_generator.state = found["drawing"]


def _packed(state: dict[str, Any]) -> Any:
    return backend.public_tensor(backend.to_tensor(np.frombuffer(json.dumps(state).encode(), np.uint8)))


def _unpacked(state: Any) -> Any:
    return json.loads(backend.to_numpy(state).astype(np.uint8).tobytes())


def manual_seed(seed: int) -> None:
    """Do what `set_seed` does. Source: MindSpore, `mindspore.manual_seed`."""
    set_seed(seed)


def initial_seed() -> int | None:
    """Return the seed that was set, or None. Source: MindSpore, `mindspore.initial_seed`."""
    return get_seed()


def get_rng_state() -> Any:
    """Return where the process's random numbers stand, for `set_rng_state`, as a uint8 Tensor.

    Example: ``state = mixtrain.get_rng_state()``. Source: MindSpore, `mindspore.get_rng_state`.
    """
    return _packed(seed_state())


def set_rng_state(state: Any) -> None:
    """Go on drawing from where `get_rng_state` was called.

    Example: ``mixtrain.set_rng_state(state)``. Source: MindSpore, `mindspore.set_rng_state`.
    """
    restore_seed_state(_unpacked(state))
