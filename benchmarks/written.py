"""Convert results to JSON values, and read and write the files of records."""

from __future__ import annotations

import json
import math
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.findings import Findings
from benchmarks.goals import evaluate
from benchmarks.measure import Series
from benchmarks.race import Race

RESULTS: Final = pathlib.Path(__file__).parent / "results"


def race_record(race: Race, findings: Findings) -> dict[str, Any]:
    """Return the record of a race: a row per contender, the missing contenders, and the goals."""
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
        "goals": [evaluate(goal, findings.series) for goal in race.goals],
    }


def _row(steps: int, series: Series) -> dict[str, Any]:
    low, middle, high = series.quartiles
    return {
        "name": series.name,
        "steps_per_round": steps,
        "unit": series.unit,
        "median": middle,
        "low": low,
        "high": high,
        "spread": series.spread,
        "samples_per_second": 1000 * series.samples / middle if series.samples else None,
    }


def write_json(record: Mapping[str, Any], folder: pathlib.Path = RESULTS) -> pathlib.Path:
    """Write a record atomically; return its path."""
    path = folder / f"{record['set']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, suffix=".new") as file:
        json.dump(rounded(record), file, indent=1)
        file.write("\n")
    pathlib.Path(file.name).replace(path)
    return path


def read_records(names: Sequence[str], folder: pathlib.Path = RESULTS) -> list[dict[str, Any]]:
    """Return the existing records of some sets, in order."""
    paths = [folder / f"{name}.json" for name in names]
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def rounded(value: Any) -> Any:
    """Round all floats to five significant digits; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value
