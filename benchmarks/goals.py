"""Goals: limits on the ratio of two contenders' time or memory."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping
from typing import Any

from benchmarks.measure import Series


@dataclasses.dataclass(frozen=True)
class Goal:
    """A ratio of two contenders; lower is better.

    Attributes:
        what: What is compared, for the table.
        ours: Name of a contender.
        peer: Name of another of the same race.
        limit: Largest ratio that meets the goal; None for a ratio that is only reported.
    """

    what: str
    ours: str
    peer: str
    limit: float | None = None


def evaluate(goal: Goal, series: Mapping[str, Series]) -> dict[str, Any]:
    """Evaluate a goal: the median over rounds of the ratio of both values of a round.

    Args:
        goal: The goal.
        series: Measurements by contender.

    Returns:
        The goal's row of the record; "measured" is None where a contender is missing.
    """
    row: dict[str, Any] = {**dataclasses.asdict(goal), "measured": None, "low": None, "high": None, "met": None}
    if goal.ours not in series or goal.peer not in series:
        return row
    pairs = zip(series[goal.ours].values, series[goal.peer].values, strict=True)
    ratios = [ours / peer for ours, peer in pairs]
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    row |= {"measured": median, "low": low, "high": high}
    row["met"] = None if goal.limit is None else median <= goal.limit
    return row
