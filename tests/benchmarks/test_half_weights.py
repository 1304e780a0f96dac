"""Weights in bfloat16 come to the loss of float32 within a percent, but for rounding to nearest; a page says so."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import pytest

from benchmarks import half_weights
from benchmarks.half_weights import GOAL, TRAININGS, WAYS, as_text, measured, record_of
from benchmarks.surroundings import RunStart
from benchmarks.table import update_section
from benchmarks.written import write_json


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    training = dataclasses.replace(TRAININGS["LeNet-5"], steps=100, epochs=3)
    return {way: measured("LeNet-5", way, training) for way in WAYS}


@pytest.mark.slow
def test_the_losses_of_weights_in_bfloat16_are_those_of_float32(rows: dict[str, Any]) -> None:
    exact = rows["float32, O0"]["losses"]
    assert exact[-1] < 0.95 * exact[0]
    ratios = {way: row["losses"][-1] / exact[-1] - 1 for way, row in rows.items()}
    nearest = ratios.pop("bfloat16, nearest")
    assert max(map(abs, ratios.values())) <= GOAL < nearest, (ratios, nearest)
    moved = {way: row["moved"] for way, row in rows.items()}
    assert moved["bfloat16, nearest"] < 0.4 and moved["bfloat16, compensated"] > 0.97 * moved["float32, O2 bfloat16"]


@pytest.mark.slow
def test_the_record_and_the_page_have_every_row(rows: dict[str, Any], tmp_path: pathlib.Path) -> None:
    record = record_of(list(rows.values()), RunStart())
    assert record["set"] in half_weights.NAMES and write_json(record, tmp_path).exists()
    page = tmp_path / "page.md"
    page.write_text(f"<!-- {record['set']}: begin -->\n<!-- {record['set']}: end -->\n")
    update_section(record["set"], as_text(record), page)
    assert all(page.read_text().count(f"| {way} |") == 2 for way in WAYS)
    weights = {way: row["weights"] + row["copies"] + row["rests"] for way, row in rows.items()}
    plain = weights["float32, O0"]
    assert weights["bfloat16 with float32 copies"] == 1.5 * plain
    assert weights["bfloat16, compensated"] == plain and weights["bfloat16, stochastic"] == 0.5 * plain
