"""Races: contenders on one workload, what is measured of them, and the goals among them."""

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
        workload: What they train.
        contenders: Who they are.
        steps: Steps a round.
        goals: What is compared.
        rounds: How often each is measured.
        patience: Seconds after which no further round is begun, once there were two.
        measure: What is measured.
        title: Its name in the tables; by default the workload's.
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
        """Its name in the tables."""
        return self.title or self.workload.title

    def steps_of(self, contender: Contender) -> int:
        """Return a contender's steps a round."""
        return contender.steps or self.steps

    def changed(self, *, rounds: int | None = None, steps: int | None = None, quick: bool = False) -> Race:
        """Return the race with other numbers of rounds and steps, where given; rounds that are given are all run.

        Args:
            rounds: How often each contender is measured.
            steps: Steps a round of every contender.
            quick: Three rounds of an eighth of the steps, where not given.
        """
        contenders = self.contenders
        if steps is not None:
            contenders = tuple(dataclasses.replace(one, steps=steps) for one in contenders)
        elif quick:
            rounds, steps = rounds or 3, max(1, self.steps // 8)
            contenders = tuple(dataclasses.replace(one, steps=min(steps, self.steps_of(one))) for one in contenders)
        return dataclasses.replace(
            self,
            rounds=rounds or self.rounds,
            patience=self.patience if rounds is None else math.inf,
            steps=steps or self.steps,
            contenders=contenders,
        )


@dataclasses.dataclass(frozen=True)
class Set:
    """Races that are run and written together.

    Attributes:
        name: What `--set` calls it, and its record and markers.
        what: What it shows.
        races: The races.
        default: Whether a run without `--set` has it.
    """

    name: str
    what: str
    races: tuple[Race, ...]
    default: bool = True
