"""Augmentation policies, which apply transforms at random: RandomSelectSubpolicy and UniformAugment."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from mixtrain import checks
from mixtrain.data_backend import row_random
from mixtrain.dataset.transforms.compose import Compound
from mixtrain.dataset.transforms.operation import Seed
from mixtrain.dataset.transforms.transform_chain import check_operation, numpy_generator, run_part
from mixtrain.dataset.vision.arguments import probability
from mixtrain.typing import Tensor


class RandomSelectSubpolicy(Compound):
    """One of the lists of `policy`, chosen at random, of pairs (transform, probability), each applied with its own
    probability.

    Example:
        >>> import numpy as np
        >>> from mixtrain.dataset.vision import Invert
        >>> RandomSelectSubpolicy([[(Invert(), 1.0)]])(np.array([[255]], np.uint8)).tolist()
        [[0]]
    """

    def __init__(self, policy: Sequence[Sequence[tuple[Any, float]]]) -> None:
        where, write = "RandomSelectSubpolicy", "policy=[[(vision.Invert(), 0.5)]]"
        self.policy: list[list[tuple[Any, float]]] = []
        for rules in checks.instance(where, "policy", policy, (list, tuple), write):
            checks.instance(where, "each list of policy", rules, (list, tuple), write)
            self.policy.append([])
            for rule in rules:
                operation, prob = checks.instance(where, "each rule", rule, (list, tuple), write)
                check_operation(where, "policy", operation)
                self.policy[-1].append((operation, probability(where, prob)))
        if not self.policy or not all(self.policy):
            raise checks.fail_value(where, "policy must have lists that are not empty", policy, write)
        super().__init__([operation for rules in self.policy for operation, _ in rules])

    def graph(self, value: Tensor, seed: Seed) -> Tensor:

        def apply(rules: list[tuple[Any, float]]) -> Tensor:
            result = value
            for index, (operation, prob) in enumerate(rules, start=1):
                rule_seed, image = row_random.fold_in(seed, index), result
                # Both functions are called before the loop goes on.
                result = row_random.cond(
                    row_random.bernoulli(row_random.fold_in(rule_seed, 0), prob),
                    lambda: operation.graph(image, row_random.fold_in(rule_seed, 1)),  # noqa: B023
                    lambda: image,  # noqa: B023
                )
            return result

        index = row_random.integer(row_random.fold_in(seed, 0), len(self.policy))
        return row_random.switch(index, [functools.partial(apply, rules) for rules in self.policy])

    def run_parts(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        generator = numpy_generator(seed)
        rules = self.policy[int(generator.integers(len(self.policy)))]
        for index, (operation, prob) in enumerate(rules):
            if generator.random() < prob:
                values = run_part(operation, values, seed, index)
        return values


class UniformAugment(Compound):
    """`num_ops` of `transforms`, which preserve dtype and rank, chosen at random with replacement, each applied with
    probability 0.5.

    Example:
        >>> import numpy as np
        >>> from mixtrain.dataset.vision import Invert
        >>> UniformAugment([Invert()])(np.zeros((1, 1), np.uint8)).shape
        (1, 1)
    """

    def __init__(self, transforms: Sequence[Any], num_ops: int = 2) -> None:
        super().__init__(list(transforms))
        self.num_ops = checks.integer("UniformAugment", "num_ops", num_ops, at_least=1, example=2)

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        for turn in range(self.num_ops):
            turn_seed, image = row_random.fold_in(seed, turn), value
            # All functions are called before the loop goes on.
            branches = [
                lambda transform=transform: transform.graph(image, row_random.fold_in(turn_seed, 1))  # noqa: B023
                for transform in self.transforms
            ]
            index = row_random.integer(row_random.fold_in(turn_seed, 0), 2 * len(branches))
            value = row_random.switch(index, [*branches, *[lambda: image] * len(branches)])  # noqa: B023
        return value

    def run_parts(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        generator = numpy_generator(seed)
        for index in range(self.num_ops):
            operation = self.transforms[int(generator.integers(len(self.transforms)))]
            if generator.random() < 0.5:
                values = run_part(operation, values, seed, index)
        return values
