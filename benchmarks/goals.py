"""The goals: which contender may take how much of which other's time, or memory."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping
from typing import Any

from benchmarks.measure import Series


@dataclasses.dataclass(frozen=True)
class Goal:
    """One ratio, lower is better.

    Attributes:
        what: What is compared, for the table.
        ours: Name of a contender.
        peer: Name of another of the same race.
        limit: What the ratio may not pass; None where it is only looked at.
    """

    what: str
    ours: str
    peer: str
    limit: float | None = None


def judged(goal: Goal, found: Mapping[str, Series]) -> dict[str, Any]:
    """Return what was seen of a goal: the median over rounds of one's value over the other's of the same round.

    Args:
        goal: The goal.
        found: What was measured, by contender.

    Returns:
        Plain values for the record; "seen" is None where a contender is missing.
    """
    row: dict[str, Any] = {**dataclasses.asdict(goal), "seen": None, "low": None, "high": None, "met": None}
    if goal.ours not in found or goal.peer not in found:
        return row
    pairs = zip(found[goal.ours].values, found[goal.peer].values, strict=True)
    ratios = [ours / peer for ours, peer in pairs]
    low, seen, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    row |= {"seen": seen, "low": low, "high": high}
    row["met"] = None if goal.limit is None else seen <= goal.limit
    return row
