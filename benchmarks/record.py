"""A set's record: its races run one after another, as plain values, and its file."""

from __future__ import annotations

import functools
import json
import math
import pathlib
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from benchmarks.children import Interpreters
from benchmarks.findings import Findings
from benchmarks.fresh import FIRST_STEP, PEAK_MEMORY, fresh_values
from benchmarks.goals import judged
from benchmarks.measure import Say, Series
from benchmarks.race import Measure, Race
from benchmarks.step_time import step_times
from benchmarks.surroundings import load_average, surroundings

RESULTS: Final = pathlib.Path(__file__).parent / "results"
MEASURES: Final[dict[Measure, Callable[[Race, Interpreters, Say], Findings]]] = {
    "step time": step_times,
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
    begun, load = time.perf_counter(), load_average()
    versions: dict[str, str] = {}
    found = []
    for race in races:
        findings = MEASURES[race.measure](race, interpreters, functools.partial(_say_of, race, say))
        versions |= findings.versions
        found.append(_race_record(race, findings))
    return {
        "set": name,
        "surroundings": surroundings(),
        "versions": dict(sorted(versions.items())),
        "load_average": {"before": load, "after": load_average()},
        "seconds": time.perf_counter() - begun,
        "races": found,
    }


def _say_of(race: Race, say: Say, text: str) -> None:
    say(f"{race.name}: {text}")


def _race_record(race: Race, findings: Findings) -> dict[str, Any]:
    return {
        "race": race.name,
        "measure": race.measure,
        "rounds": max((len(series.values) for series in findings.series.values()), default=0),
        "contenders": [
            _row(race.steps_of(contender), findings.series[contender.name])
            for contender in race.contenders
            if contender.name in findings.series
        ],
        "missing": findings.missing,
        "goals": [judged(goal, findings.series) for goal in race.goals],
    }


def _row(steps: int, series: Series) -> dict[str, Any]:
    low, middle, high = series.quartiles
    return {
        "name": series.name,
        "steps_a_round": steps,
        "unit": series.unit,
        "median": middle,
        "low": low,
        "high": high,
        "spread": series.spread,
        "samples_a_second": 1000 * series.samples / middle if series.samples else None,
    }


def write_json(record: Mapping[str, Any], folder: pathlib.Path = RESULTS) -> pathlib.Path:
    """Write a record, whole or not at all; return its path."""
    path = folder / f"{record['set']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, suffix=".new") as file:
        json.dump(rounded(record), file, indent=1)
        file.write("\n")
    pathlib.Path(file.name).replace(path)
    return path


def read_records(names: Sequence[str], folder: pathlib.Path = RESULTS) -> list[dict[str, Any]]:
    """Return the records of those sets that have one, in order."""
    paths = [folder / f"{name}.json" for name in names]
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def rounded(value: Any) -> Any:
    """Return a structure with its floats to five significant digits, and no NaN."""
    if isinstance(value, Mapping):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value
