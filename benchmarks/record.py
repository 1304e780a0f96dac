"""A set's record: its races run one after another, as plain values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.children import Interpreters
from benchmarks.findings import Findings
from benchmarks.fresh import FIRST_STEP, PEAK_MEMORY, fresh_values
from benchmarks.measure import Say
from benchmarks.race import Measure, Race
from benchmarks.step_time import step_times
from benchmarks.surroundings import RunStart
from benchmarks.written import race_record

MEASURES: Final[dict[Measure, Callable[[Race, Interpreters, Say], Findings]]] = {
    "step time": step_times,
    "batch time": step_times,
    "time to first step": lambda *told: fresh_values(FIRST_STEP, *told),
    "peak memory": lambda *told: fresh_values(PEAK_MEMORY, *told),
}


def record_of(name: str, races: Sequence[Race], interpreters: Interpreters, say: Say) -> dict[str, Any]:
    """Run races and return what was seen.

    Args:
        name: Name of the set.
        races: Its races.
        interpreters: Which Python runs which peer.
        say: Told how far it is.
    """
    start = RunStart()
    versions: dict[str, str] = {}
    found = []
    for race in races:
        findings = MEASURES[race.measure](race, interpreters, functools.partial(_say_of, race, say))
        versions |= findings.versions
        found.append(race_record(race, findings))
    return {**start.metadata(name, dict(sorted(versions.items()))), "races": found}


def _say_of(race: Race, say: Say, text: str) -> None:
    say(f"{race.name}: {text}")
