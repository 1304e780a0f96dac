"""Two checkouts in turn: whose contenders are timed, and when one counts as slower."""

from __future__ import annotations

import pathlib

import pytest

from benchmarks import compare
from benchmarks.contender import Contender
from benchmarks.measure import Series
from benchmarks.race import Race
from benchmarks.sets import SETS


def _found(*now: float) -> dict[str, Series]:
    return {"before": Series("before", "ms", (2.0,) * len(now)), "now": Series("now", "ms", now)}


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ((2.2, 2.4, 2.6), ["1.200", "1.150 to 1.250", "slower"]),
        ((1.0, 1.2, 1.4), ["0.600", "0.550 to 0.650", "faster"]),
        ((1.8, 2.1, 2.2), ["1.050", "0.975 to 1.075", ""]),
    ],
)
def test_a_contender_is_slower_where_the_quartiles_of_its_ratio_leave_out_one(
    now: tuple[float, ...], expected: list[str]
) -> None:
    assert compare.row("a race", Contender("ours", "mixtrain"), _found(*now))[4:] == expected


def test_our_contenders_are_timed_where_steps_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def timed(race: Race, contender: Contender, before: pathlib.Path, rounds: int) -> dict[str, Series]:
        assert (before, rounds) == (pathlib.Path("there"), 5)
        return _found(2.0)

    monkeypatch.setattr(compare, "timed_in_turn", timed)
    races = [*SETS["mlp"].races, *SETS["memory"].races, *SETS["data"].races]
    rows = list(compare.compared(races, pathlib.Path("there"), 5))
    assert all(name.startswith("mixtrain") for _, name, *_ in rows)
    assert {race for race, *_ in rows} == {race.name for race in races if race.measure != "peak memory"}
    assert rows[0][1:] == ["mixtrain O0, callback on every step", "2", "2", "1.000", "1.000 to 1.000", ""]
