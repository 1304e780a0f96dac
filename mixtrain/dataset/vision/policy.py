"""Which transforms an image gets, by chance: RandomSelectSubpolicy and UniformAugment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixtrain import backend, checks
from mixtrain.dataset.transforms.compose import Compound
from mixtrain.dataset.transforms.operation import Seed
from mixtrain.dataset.transforms.transform_chain import check_operation, run_one
from mixtrain.dataset.vision.arguments import probability


class RandomSelectSubpolicy(Compound):
    """One of several lists of transforms, each of which is applied with its own probability.

    Args:
        policy: The lists, of pairs (transform, probability).

    Raises:
        TypeError: `policy` is not a list of lists of pairs.
        ValueError: A list is empty, or a probability is not from 0 to 1.

    Example:
        >>> import numpy as np
        >>> from mixtrain.dataset.vision import Invert
        >>> RandomSelectSubpolicy([[(Invert(), 1.0)]])(np.array([[255]], np.uint8)).tolist()
        [[0]]

    Source: MindSpore, `mindspore.dataset.vision.RandomSelectSubpolicy`.
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

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor."""
        row_random = backend.row_random

        def follow(rules: list[tuple[Any, float]]) -> Any:
            result = value
            for number, (operation, prob) in enumerate(rules, start=1):
                own, image = row_random.fold(seed, number), result
                result = row_random.either(
                    row_random.happens(row_random.fold(own, 0), prob),
                    lambda: operation.graph(image, row_random.fold(own, 1)),  # noqa: B023  Called before the next turn.
                    lambda: image,  # noqa: B023
                )
            return result

        index = row_random.integer(row_random.fold(seed, 0), len(self.policy))
        return row_random.one_of(index, [lambda rules=rules: follow(rules) for rules in self.policy])

    def run_parts(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        """Return the results for values under a seed."""
        generator = np.random.default_rng([abs(part) for part in seed])
        rules = self.policy[int(generator.integers(len(self.policy)))]
        for number, (operation, prob) in enumerate(rules):
            if generator.random() < prob:
                result = run_one(operation, values, (seed[0], seed[1] * 256 + number + 1))
                values = result if isinstance(result, tuple) else (result,)
        return values


class UniformAugment(Compound):
    """Some transforms picked from a list, each of them applied with a probability of one half.

    Args:
        transforms: The list; results have the dtype and rank of what goes in.
        num_ops: How many are picked; one may be picked twice.

    Raises:
        TypeError: `transforms` is not a list of functions.
        ValueError: It is empty, or `num_ops` is below 1.

    Example:
        >>> import numpy as np
        >>> from mixtrain.dataset.vision import Invert
        >>> UniformAugment([Invert()])(np.zeros((1, 1), np.uint8)).shape
        (1, 1)

    Source: MindSpore, `mindspore.dataset.vision.UniformAugment`.
    """

    def __init__(self, transforms: Sequence[Any], num_ops: int = 2) -> None:
        super().__init__(list(transforms))
        self.num_ops = checks.integer("UniformAugment", "num_ops", num_ops, at_least=1, example=2)

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor."""
        row_random = backend.row_random
        for number in range(self.num_ops):
            own, image = row_random.fold(seed, number), value
            branches = [
                lambda one=one: one.graph(image, row_random.fold(own, 1))  # noqa: B023  Called before the next turn.
                for one in self.transforms
            ]
            index = row_random.integer(row_random.fold(own, 0), 2 * len(branches))
            value = row_random.one_of(index, [*branches, *[lambda: image] * len(branches)])  # noqa: B023
        return value

    def run_parts(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        """Return the results for values under a seed."""
        generator = np.random.default_rng([abs(part) for part in seed])
        for number in range(self.num_ops):
            operation = self.transforms[int(generator.integers(len(self.transforms)))]
            if generator.random() < 0.5:
                result = run_one(operation, values, (seed[0], seed[1] * 256 + number + 1))
                values = result if isinstance(result, tuple) else (result,)
        return values
