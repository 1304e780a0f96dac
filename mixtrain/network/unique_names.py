"""Names made unique: the second holder of a name gets ``name#2``."""

from __future__ import annotations

from collections.abc import Iterable

from mixtrain.typing import Variable


def unique_names(names: Iterable[str]) -> list[str]:
    """Return the names in their order; one that is taken gets the lowest number from 2 on that makes it free.

    Example:
        >>> unique_names(["dense", "norm", "dense", "dense"])
        ['dense', 'norm', 'dense#2', 'dense#3']
    """
    numbers: dict[str, int] = {}  # By taken name: the last number that was tried for it.
    unique = []
    for name in names:
        free = name
        while free in numbers:
            numbers[name] += 1
            free = f"{name}#{numbers[name]}"
        numbers[free] = 1
        unique.append(free)
    return unique


def variable_names(variables: Iterable[Variable]) -> list[str]:
    """Return a unique name of each variable: the name of a Parameter, the path of another Keras variable."""
    # Only a Parameter knows whether it was named.
    return unique_names(variable.name if hasattr(variable, "named") else variable.path for variable in variables)
