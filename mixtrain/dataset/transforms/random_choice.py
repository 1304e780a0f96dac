"""Transforms applied at random: RandomApply, RandomChoice and RandomOrder."""

from __future__ import annotations

import functools
from typing import Any

from mixtrain import checks
from mixtrain.data_backend import row_random
from mixtrain.dataset.transforms.compose import Compound
from mixtrain.dataset.transforms.operation import Operation, Seed
from mixtrain.dataset.transforms.transform_chain import numpy_generator, run_eagerly, run_graph, run_part
from mixtrain.typing import Tensor


class RandomApply(Compound):
    """A list of `transforms` and functions that preserve dtype and rank, applied in sequence with probability `prob`.

    Example:
        >>> RandomApply([lambda x: x + 1], prob=1.0)(3)
        4
    """

    def __init__(self, transforms: list[Operation], prob: float = 0.5) -> None:
        super().__init__(transforms)
        self.prob = checks.number("RandomApply", "prob", prob, at_least=0.0, at_most=1.0, example=0.5)

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        return row_random.cond(
            row_random.bernoulli(row_random.fold_in(seed, 0), self.prob),
            lambda: run_graph(self.transforms, value, row_random.fold_in(seed, 1)),
            lambda: value,
        )

    def run_parts(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        return run_eagerly(self.transforms, values, seed) if numpy_generator(seed).random() < self.prob else values


class RandomChoice(Compound):
    """One of several transforms, chosen at random.

    Args: transforms: A list of transforms and functions, whose results have the same dtype and rank.

    Example:
        >>> RandomChoice([lambda x: x + 1, lambda x: 1 + x])(3)
        4
    """

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        index = row_random.integer(row_random.fold_in(seed, 0), len(self.transforms))
        branch_seed = row_random.fold_in(seed, 1)
        branches = [functools.partial(transform.graph, value, branch_seed) for transform in self.transforms]
        return row_random.switch(index, branches)

    def run_parts(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        index = int(numpy_generator(seed).integers(len(self.transforms)))
        return run_part(self.transforms[index], values, seed, 0)


class RandomOrder(Compound):
    """All of several transforms, in random order.

    Args: transforms: A list of transforms and functions, each of which accepts the results of all others.

    Example:
        >>> RandomOrder([lambda x: x + 1, lambda x: x + 2])(3)
        6
    """

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        order = row_random.permutation(row_random.fold_in(seed, 0), len(self.transforms))
        parent_seed = row_random.fold_in(seed, 1)
        for position in range(len(self.transforms)):
            branches = [
                lambda transform=transform, value=value, index=index: transform.graph(
                    value, row_random.fold_in(parent_seed, index)
                )
                for index, transform in enumerate(self.transforms)
            ]
            value = row_random.switch(order[position], branches)
        return value

    def run_parts(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        order = numpy_generator(seed).permutation(len(self.transforms))
        return run_eagerly([self.transforms[index] for index in order], values, seed)
