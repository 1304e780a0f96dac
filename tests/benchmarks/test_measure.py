"""Interleaved rounds, warming up, and the ratios that goals are judged by."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from benchmarks.child import timed
from benchmarks.goals import Goal, evaluate
from benchmarks.measure import Series, interleaved, warm_up


def replay(seconds: list[float]) -> Callable[[], float]:
    """Return a contender whose rounds take these seconds."""
    left = iter(seconds)
    return lambda: next(left)


def test_contenders_are_timed_in_turn_and_each_round_begins_with_another() -> None:
    order: list[str] = []

    def run(name: str) -> Callable[[], float]:
        def one_round() -> float:
            order.append(name)
            return float(len(order))

        return one_round

    messages: list[str] = []
    result = interleaved({name: run(name) for name in "abc"}, rounds=4, log=messages.append)
    assert "".join(order) == "abcbcacababc"
    assert result == {"a": [1, 6, 8, 10], "b": [2, 4, 9, 11], "c": [3, 5, 7, 12]}
    assert messages[-1] == "round 4 of 4"


@pytest.mark.parametrize(("patience", "rounds"), [(-1.0, 2), (60.0, 5)], ids=["out of patience", "patient"])
def test_out_of_patience_no_third_round_is_begun(patience: float, rounds: int) -> None:
    result = interleaved({"a": lambda: 1.0, "b": lambda: 2.0}, rounds=5, patience=patience)
    assert result == {"a": [1.0] * rounds, "b": [2.0] * rounds}


@pytest.mark.parametrize(
    ("seconds", "rounds"),
    [([9.0, 1.0, 0.95], 3), ([1.0, 1.0], 2), ([2.0**-n for n in range(9)], 8), ([31.0], 1)],
    ids=["compiles first", "steady", "never steady", "too slow to repeat"],
)
def test_a_contender_is_warmed_up_until_its_time_no_longer_falls(seconds: list[float], rounds: int) -> None:
    assert warm_up(replay(seconds)) == rounds


def test_garbage_is_not_collected_while_a_round_is_timed() -> None:
    seen: list[bool] = []
    assert timed(lambda: seen.append(gc.isenabled())) >= 0
    assert seen == [False] and gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        timed(lambda: 1 / 0)
    assert gc.isenabled()


def test_a_series_knows_its_median_and_spread() -> None:
    series = Series("a", "ms per step", (1.0, 2.0, 4.0, 3.0, 5.0))
    assert series.quartiles == (2.0, 3.0, 4.0)
    assert series.spread == pytest.approx(2 / 3)
    assert Series("a", "s", (2.0,)).quartiles == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(("limit", "met"), [(0.5, True), (0.49, False), (None, None)])
def test_a_goal_is_judged_by_the_median_of_the_ratios_within_rounds(limit: float | None, met: bool | None) -> None:
    # The second round was slow for both.
    result = {"a": Series("a", "ms", (1.0, 50.0, 1.0)), "b": Series("b", "ms", (2.0, 100.0, 4.0))}
    row = evaluate(Goal("a against b", "a", "b", limit), result)
    assert (row["measured"], row["low"], row["high"], row["met"]) == (0.5, 0.375, 0.5, met)


def test_a_goal_whose_peer_is_missing_is_not_judged() -> None:
    row = evaluate(Goal("a against b", "a", "b", 1.0), {"a": Series("a", "ms", (1.0,))})
    assert row["measured"] is None and row["met"] is None
