"""Run the races of a set and collect their record."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.children import Interpreters
from benchmarks.findings import Findings
from benchmarks.fresh import FIRST_STEP, PEAK_MEMORY, fresh_values
from benchmarks.measure import Log
from benchmarks.race import Measure, Race
from benchmarks.step_time import step_times
from benchmarks.surroundings import RunStart
from benchmarks.written import race_record

MEASURES: Final[dict[Measure, Callable[[Race, Interpreters, Log], Findings]]] = {
    "step time": step_times,
    "batch time": step_times,
    "time to first step": functools.partial(fresh_values, FIRST_STEP),
    "peak memory": functools.partial(fresh_values, PEAK_MEMORY),
}


def record_of(name: str, races: Sequence[Race], interpreters: Interpreters, log: Log) -> dict[str, Any]:
    """Run races and return their record.

    Args:
        name: Name of the set.
        races: Its races.
        interpreters: Interpreters of the peers.
        log: Receives progress messages.
    """
    start = RunStart()
    versions: dict[str, str] = {}
    records = []
    for race in races:
        findings = MEASURES[race.measure](race, interpreters, functools.partial(_log_race, race, log))
        versions |= findings.versions
        records.append(race_record(race, findings))
    return {**start.metadata(name, dict(sorted(versions.items()))), "races": records}


def _log_race(race: Race, log: Log, text: str) -> None:
    log(f"{race.name}: {text}")
