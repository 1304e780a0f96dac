"""Interleaved rounds: every contender once a round, in turn, and the medians over the rounds."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Series:
    """One contender's rounds.

    Attributes:
        name: Its name.
        unit: What the values are.
        values: One a round.
        samples: Samples for each unit of 1000; 0 where that means nothing.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    samples: int = 0

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """The lower quartile, the median and the upper quartile."""
        if len(self.values) == 1:
            return self.values * 3  # type: ignore[return-value]
        low, middle, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return low, middle, high

    @property
    def spread(self) -> float:
        """The distance of the quartiles over the median."""
        low, middle, high = self.quartiles
        return (high - low) / middle


def warm_up(run: Callable[[], float], *, most: int = 8, patience: float = 15.0) -> int:
    """Run a contender until its time no longer falls by a tenth: its first rounds compile.

    Args:
        run: Runs a round and returns its seconds.
        most: Rounds at most.
        patience: Seconds after which no further round is begun.

    Returns:
        How many rounds were run.
    """
    total = last = run()
    for count in range(1, most):
        if total > patience:
            return count
        now = run()
        total += now
        if now > 0.9 * last:
            return count + 1
        last = now
    return most


def interleaved(
    runs: Mapping[str, Callable[[], float]],
    *,
    rounds: int,
    patience: float = math.inf,
    say: Say = lambda text: None,
) -> dict[str, list[float]]:
    """Time contenders in turn; each round begins with another of them.

    Args:
        runs: By name, what runs a round and returns its value.
        rounds: How often each is timed.
        patience: Seconds after which no round is begun, once there were two.
        say: Told how far it is.

    Returns:
        The values of each contender's rounds.
    """
    begun = time.perf_counter()
    names = list(runs)
    found: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        if number >= 2 and time.perf_counter() - begun > patience:
            break
        for name in turned(names, number):
            found[name].append(runs[name]())
        say(f"round {number + 1} of {rounds}")
    return found


def turned(names: Sequence[str], number: int) -> list[str]:
    """Return the names beginning with another one each round."""
    start = number % len(names)
    return [*names[start:], *names[:start]]
