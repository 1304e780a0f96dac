"""The seed of one pass over a dataset: the run's seed and the position in the run, so that any pass can be repeated."""

from __future__ import annotations

import dataclasses
import secrets

import numpy as np

from mixtrain.dataset import config


@dataclasses.dataclass(frozen=True)
class PassSeed:
    """The seed of one pass over one stage; equal seeds give equal random numbers.

    Attributes:
        seed: The seed of the run.
        chosen: Whether the user chose the seed.
        path: The position in the run: the epoch, then one index for each stage that reorders rows.
        epoch: The epoch, from 0.
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

    def fold_in(self, index: int) -> PassSeed:
        """Return another seed, derived from this one and an index."""
        return dataclasses.replace(self, path=(*self.path, index))

    def generator(self) -> np.random.Generator:
        """Return a new random number generator with this seed."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=self.path))

    def common(self) -> PassSeed:
        """Return the seed that all processes of a run share: without a chosen seed, the one of seed 0."""
        return self if self.chosen else dataclasses.replace(self, seed=0)
