"""The soak in small: nothing that a case holds grows, nothing is retraced, and its text has every row."""

from __future__ import annotations

import pathlib

import pytest

from benchmarks import soak
from benchmarks.soak import CASES, measured
from benchmarks.surroundings import RunStart
from benchmarks.table import update_section
from benchmarks.written import write_json

COUNTS = {
    "epoch_host": 20_000, "epoch_sink": 20_000, "train_calls": 30, "models_of_cells": 4, "models_of_keras": 4,
    "keras_alone": 4, "predicts": 2_000, "folds": 4,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_case_is_flat_after_its_warm_up(name: str) -> None:
    row = measured(CASES[name], COUNTS[name])
    assert row["count"] == COUNTS[name] and soak.flat(CASES[name], row), row


def test_what_grows_is_not_flat_and_its_text_says_so(tmp_path: pathlib.Path) -> None:
    usage = {"mib": 100.0, "threads": 3.0, "files": 4.0}
    row = {
        "name": "predicts", "what": "calls", "count": 10, "seconds": 1.0, "traces": 0, "scales": [1.0, 8.0],
        "before": usage, "most": usage, "after": usage,
    }
    grown = [
        {**row, "after": {**usage, "mib": 100.0 + soak.MAX_GROWTH_MIB + 1}},
        {**row, "after": {**usage, "threads": 4.0}},
        {**row, "after": {**usage, "files": 5.0}}, {**row, "traces": 1}, {**row, "scales": [0.5, 8.0]},
    ]
    case = CASES["predicts"]
    assert [soak.flat(case, item) for item in (row, *grown)] == [True] + [False] * 5
    large = {**row, "after": {**usage, "mib": 500.0}}
    assert soak.flat(case, grown[0], baseline=large) and not soak.flat(case, large, grown[0])
    record = soak.record_of([row, *grown], RunStart())
    assert record["set"] in soak.NAMES and write_json(record, tmp_path).exists()
    page = tmp_path / "page.md"
    page.write_text(f"<!-- {record['set']}: begin -->\n<!-- {record['set']}: end -->\n")
    update_section(record["set"], soak.as_text(record), page)
    assert page.read_text().count("| not flat |") == 5 and page.read_text().count("| flat |") == 1
