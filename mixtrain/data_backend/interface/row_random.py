"""Random numbers of a row: functions of a seed, so that the same seed gives the same numbers on any thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mixtrain.typing import Tensor, Tree


def fold_in(seed: Any, number: int) -> Any:
    """Return the seed of the part `number` (below 255) of `seed`."""

def uniform(seed: Any, low: float = 0.0, high: float = 1.0, shape: tuple[int, ...] = ()) -> Tensor:
    """Return float32 numbers from `low` to below `high`; `low` itself where they are equal."""

def integer(seed: Any, bound: Tensor | int) -> Tensor:
    """Return an int32 from 0 to below `bound`, which is at least 1 and may be a tensor."""

def bernoulli(seed: Any, probability: float) -> Tensor:
    """Return True with the given probability: never for 0, always for 1."""

def permutation(seed: Any, count: int) -> Tensor:
    """Return the numbers 0 to `count` - 1 in random order."""

def normal(seed: Any, deviation: float, shape: tuple[int, ...]) -> Tensor:
    """Return normally distributed float32 numbers around 0."""

def cond(condition: Tensor, yes: Callable[[], Tensor], no: Callable[[], Tensor]) -> Tree:
    """Return the result of one of two functions without arguments; their sizes may differ."""

def switch(index: Any, branches: Sequence[Callable[[], Tensor]]) -> Tensor:
    """Return the result of the function number `index`; sizes may differ, dtypes and ranks may not."""
