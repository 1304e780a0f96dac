"""Interleaved rounds: every contender once a round, in turn, and the medians over the rounds."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

Log = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Series:
    """Measurements of one contender.

    Attributes:
        name: Its name.
        unit: Unit of the values.
        values: One value per round.
        samples: Batch size, for throughput; 0 where there is none.
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
        """The interquartile range over the median."""
        low, middle, high = self.quartiles
        return (high - low) / middle


def warm_up(run: Callable[[], float], *, max_rounds: int = 8, patience: float = 15.0) -> int:
    """Run a contender until its time no longer falls by a tenth: its first rounds compile.

    Args:
        run: Runs a round and returns its seconds.
        max_rounds: Maximum number of rounds.
        patience: Seconds after which no further round is started.

    Returns:
        The number of rounds.
    """
    total = previous = run()
    for count in range(1, max_rounds):
        if total > patience:
            return count
        seconds = run()
        total += seconds
        if seconds > 0.9 * previous:
            return count + 1
        previous = seconds
    return max_rounds


def interleaved(
    runs: Mapping[str, Callable[[], float]],
    *,
    rounds: int,
    patience: float = math.inf,
    log: Log = lambda text: None,
) -> dict[str, list[float]]:
    """Time contenders in turn; each round starts with the next one.

    Args:
        runs: Functions by name that run a round and return its value.
        rounds: How often each is timed.
        patience: Seconds after which no round is started, from the third on.
        log: Receives progress messages.

    Returns:
        The values of each contender's rounds.
    """
    started = time.perf_counter()
    names = list(runs)
    values: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        if number >= 2 and time.perf_counter() - started > patience:
            break
        for name in rotated(names, number):
            values[name].append(runs[name]())
        log(f"round {number + 1} of {rounds}")
    return values


def rotated(names: Sequence[str], number: int) -> list[str]:
    """Return the names rotated by the number of the round."""
    start = number % len(names)
    return [*names[start:], *names[:start]]
