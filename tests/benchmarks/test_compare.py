"""Two checkouts in turn: whose contenders are timed, and when one counts as slower."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from benchmarks import compare
from benchmarks.contender import Contender
from benchmarks.findings import Findings
from benchmarks.measure import Series
from benchmarks.race import Race
from benchmarks.sets import SETS


def _found(*now: float) -> dict[str, Series]:
    return {"before": Series("before", "ms", (2.0,) * len(now)), "now": Series("now", "ms", now)}


def _record(*rows: dict[str, Any]) -> dict[str, Any]:
    around = {"cpu": "a processor", "cores": 2, "device": "CPU", "cpu_flags": ["avx2"], "python": "3.11"}
    return {
        "surroundings": around, "load_average": {"before": 0.5, "after": 1.5}, "versions": {"keras": "3"},
        "seconds": 7.0, "revision_before": "abc1234", "rounds": 3, "rows": rows,
    }


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ((2.2, 2.4, 2.6), "| a race | ours | 2 | 2.4 | 1.200 | 1.150 to 1.250 | slower |"),
        ((1.0, 1.2, 1.4), "| a race | ours | 2 | 1.2 | 0.600 | 0.550 to 0.650 | faster |"),
        ((1.8, 2.1, 2.2), "| a race | ours | 2 | 2.1 | 1.050 | 0.975 to 1.075 |  |"),
    ],
)
def test_a_contender_is_slower_where_the_quartiles_of_its_ratio_leave_out_one(
    now: tuple[float, ...], expected: str
) -> None:
    row = {"race": "a race", **compare.row(Contender("ours", "mixtrain"), _found(*now))}
    text = compare.as_text(_record(row))
    assert text.splitlines()[-1] == expected
    assert "Before is abc1234; 3 rounds." in text


def test_our_contenders_are_timed_where_steps_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def timed(race: Race, contender: Contender, before: pathlib.Path, rounds: int) -> Findings:
        assert (before, rounds) == (pathlib.Path("there"), 5)
        return Findings(series=_found(2.0), versions={"theirs": "1"})

    monkeypatch.setattr(compare, "timed_in_turn", timed)
    monkeypatch.setattr(compare, "revision", lambda checkout: f"that of {checkout}")
    races = [*SETS["mlp"].races, *SETS["memory"].races, *SETS["data"].races]
    record = compare.measured(races, pathlib.Path("there"), 5)
    assert record["revision_before"] == "that of there" and record["versions"]["theirs"] == "1"
    assert all(row["what"].startswith("mixtrain") for row in record["rows"])
    assert {row["race"] for row in record["rows"]} == {race.name for race in races if race.measure != "peak memory"}
    assert len(capsys.readouterr().out.splitlines()) == len(record["rows"])


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compare.main([str(tmp_path)])
    assert f"{tmp_path} must be a checkout of mixtrain" in capsys.readouterr().err
