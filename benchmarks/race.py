"""Races: contenders on one workload, what is measured, and their goals."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from benchmarks.contender import Contender
from benchmarks.goals import Goal
from benchmarks.workloads import Workload

Measure = Literal["step time", "batch time", "time to first step", "peak memory"]


@dataclasses.dataclass(frozen=True)
class Race:
    """Contenders that are measured in turn.

    Attributes:
        workload: The workload.
        contenders: The contenders.
        steps: Steps per round.
        goals: Ratios that are compared.
        rounds: Number of rounds.
        patience: Seconds after which no round is started, from the third on.
        measure: What is measured.
        title: Name in the tables; by default the workload's.
    """

    workload: Workload
    contenders: tuple[Contender, ...]
    steps: int
    goals: tuple[Goal, ...] = ()
    rounds: int = 15
    patience: float = 60.0
    measure: Measure = "step time"
    title: str = ""

    @property
    def name(self) -> str:
        """The name in the tables."""
        return self.title or self.workload.title

    def steps_of(self, contender: Contender) -> int:
        """Return the steps per round of a contender."""
        return contender.steps or self.steps

    def changed(self, *, rounds: int | None = None, steps: int | None = None, quick: bool = False) -> Race:
        """Return the race with other numbers of rounds and steps; explicit `rounds` all run, whatever their time.

        Args:
            rounds: Number of rounds.
            steps: Steps per round of every contender.
            quick: Default to three rounds of an eighth of the steps.
        """
        contenders = self.contenders
        if steps is not None:
            contenders = tuple(dataclasses.replace(item, steps=steps) for item in contenders)
        elif quick:
            rounds, steps = rounds or 3, max(1, self.steps // 8)
            contenders = tuple(
                dataclasses.replace(item, steps=min(steps, self.steps_of(item))) for item in contenders
            )
        return dataclasses.replace(
            self,
            rounds=rounds or self.rounds,
            patience=self.patience if rounds is None else math.inf,
            steps=steps or self.steps,
            contenders=contenders,
        )


@dataclasses.dataclass(frozen=True)
class Set:
    """Races that share one record.

    Attributes:
        name: Name for `--set`, of its record and of its markers.
        what: Description for `--list`.
        races: The races.
        default: Whether it is run without `--set`.
    """

    name: str
    what: str
    races: tuple[Race, ...]
    default: bool = True
