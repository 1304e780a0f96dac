"""Where the random order of a pass comes from: a seed and the place in the run, so that any pass can be repeated."""

from __future__ import annotations

import dataclasses
import secrets

import numpy as np

from mixtrain.dataset import config


@dataclasses.dataclass(frozen=True)
class PassSeed:
    """The source of random numbers of one pass over one stage; equal ones give equal numbers.

    Attributes:
        seed: The seed of the run.
        chosen: Whether the user chose the seed.
        path: The place in the run: the epoch, then one number per stage that passes the rows on in its own order.
        epoch: The epoch, counted from 0.
    """

    seed: int
    chosen: bool
    path: tuple[int, ...] = ()
    epoch: int = 0

    @classmethod
    def start(cls) -> PassSeed:
        """Return the seed of a new run, from the seed in force or, without one, a fresh seed."""
        seed = config.get_seed()
        return cls(secrets.randbits(64), False) if seed is None else cls(seed, True)

    def at_epoch(self, epoch: int) -> PassSeed:
        """Return the seed of one epoch of the run."""
        return dataclasses.replace(self, path=(*self.path, epoch), epoch=epoch)

    def into(self, place: int) -> PassSeed:
        """Return the seed of a position inside this one."""
        return dataclasses.replace(self, path=(*self.path, place))

    def generator(self) -> np.random.Generator:
        """Return the random numbers of this place, from their beginning."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=self.path))

    def common(self) -> PassSeed:
        """Return the seed that every process of a run has: without a chosen seed, the one of seed 0."""
        return self if self.chosen else dataclasses.replace(self, seed=0)
