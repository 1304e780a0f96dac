"""Which of several transforms are applied, by chance: RandomApply, RandomChoice and RandomOrder."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixtrain import backend, checks
from mixtrain.dataset.transforms.compose import Compound
from mixtrain.dataset.transforms.operation import Seed
from mixtrain.dataset.transforms.transform_chain import run_eagerly, run_graph


class RandomApply(Compound):
    """All of several transforms one after the other, or none of them.

    Args:
        transforms: A list of transforms and functions, whose results have the dtype and rank of what goes in.
        prob: With which probability they are applied.

    Raises:
        TypeError: `transforms` is not a list of functions.
        ValueError: It is empty, or `prob` is not from 0 to 1.

    Example:
        >>> RandomApply([lambda x: x + 1], prob=1.0)(3)
        4

    Source: MindSpore, `mindspore.dataset.transforms.RandomApply`.
    """

    def __init__(self, transforms: list[Any], prob: float = 0.5) -> None:
        super().__init__(transforms)
        self.prob = checks.number("RandomApply", "prob", prob, at_least=0.0, at_most=1.0, example=0.5)

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor."""
        row_random = backend.row_random
        return row_random.either(
            row_random.happens(row_random.fold(seed, 0), self.prob),
            lambda: run_graph(self.transforms, value, row_random.fold(seed, 1)),
            lambda: value,
        )

    def run_parts(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        """Return the results for values under a seed."""
        return run_eagerly(self.transforms, values, seed) if _generator(seed).random() < self.prob else values


class RandomChoice(Compound):
    """One of several transforms.

    Args:
        transforms: A list of transforms and functions, whose results have the same dtype and rank.

    Raises:
        TypeError: `transforms` is not a list of functions.
        ValueError: It is empty.

    Example:
        >>> RandomChoice([lambda x: x + 1, lambda x: 1 + x])(3)
        4

    Source: MindSpore, `mindspore.dataset.transforms.RandomChoice`.
    """

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor."""
        row_random = backend.row_random
        index = row_random.integer(row_random.fold(seed, 0), len(self.transforms))
        own = row_random.fold(seed, 1)
        return row_random.one_of(index, [lambda one=one: one.graph(value, own) for one in self.transforms])

    def run_parts(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        """Return the results for values under a seed."""
        index = int(_generator(seed).integers(len(self.transforms)))
        return run_eagerly([self.transforms[index]], values, seed)


class RandomOrder(Compound):
    """All of several transforms, in random order.

    Args:
        transforms: A list of transforms and functions, each of which takes what any other gives.

    Raises:
        TypeError: `transforms` is not a list of functions.
        ValueError: It is empty.

    Example:
        >>> RandomOrder([lambda x: x + 1, lambda x: x + 2])(3)
        6

    Source: MindSpore, `mindspore.dataset.transforms.RandomOrder`.
    """

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor."""
        row_random = backend.row_random
        order = row_random.permutation(row_random.fold(seed, 0), len(self.transforms))
        own = row_random.fold(seed, 1)
        for turn in range(len(self.transforms)):
            branches = [
                lambda one=one, now=value, number=number: one.graph(now, row_random.fold(own, number))
                for number, one in enumerate(self.transforms)
            ]
            value = row_random.one_of(order[turn], branches)
        return value

    def run_parts(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        """Return the results for values under a seed."""
        order = _generator(seed).permutation(len(self.transforms))
        return run_eagerly([self.transforms[place] for place in order], values, seed)


def _generator(seed: tuple[int, int]) -> np.random.Generator:
    return np.random.default_rng([abs(part) for part in seed])
