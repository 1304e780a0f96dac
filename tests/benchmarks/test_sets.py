"""The table of races: its goals name contenders, every network asked for exists, the page has a place for each set."""

from __future__ import annotations

import re

import pytest

from benchmarks import (
    compare,
    cpu_ceiling,
    diagnostics_cost,
    half_weights,
    one_device,
    prediction,
    scale,
    sharded_memory,
    soak,
    tensor_operators,
    tune_choices,
    two_processes,
)
from benchmarks.keras_fit_cases import CASES
from benchmarks.networks import in_cells, in_keras
from benchmarks.race import Race
from benchmarks.sets import SETS, bfloat16_limit
from benchmarks.surroundings import cpu_flags
from benchmarks.table import PAGE

RACES = [
    pytest.param(race, id=f"{name}-{number}") for name, one in SETS.items() for number, race in enumerate(one.races)
]


@pytest.mark.parametrize("race", RACES)
def test_every_goal_compares_two_contenders_of_its_race(race: Race) -> None:
    names = [contender.name for contender in race.contenders]
    assert len(set(names)) == len(names)
    for goal in race.goals:
        assert goal.ours in names and goal.peer in names
        assert goal.ours.startswith("mixtrain")


@pytest.mark.parametrize("race", RACES)
def test_every_network_that_a_contender_trains_is_written_in_its_framework(race: Race) -> None:
    cells = {"mixtrain cell", "mixtrain script", "mindspore"}
    for contender in race.contenders:
        if contender.kind in cells:
            assert race.workload.network in in_cells.NETWORKS
        elif contender.kind != "pytorch":
            assert race.workload.network in in_keras.NETWORKS


def test_the_goals_of_a_default_run_are_these() -> None:
    races = [race for one in SETS.values() if one.default for race in one.races]
    by_processor = "CIFAR CNN O2 bfloat16 against our O0"
    goals = [goal for race in races for goal in race.goals if goal.limit is not None and goal.what != by_processor]
    assert sorted(goal.limit for goal in goals if goal.limit is not None) == [
        0.05, 0.10, 0.25, 0.30, 0.50, 0.60, 0.65, 0.75, 0.85, 0.90, 0.90, 0.95, *[1.0] * 4, *[1.03] * 9, 1.05, 1.10,
        1.10, 1.25, 2.0,
    ]


@pytest.mark.parametrize(
    ("flags", "limit"),
    [("avx2", None), ("avx512_bf16", 0.67), ("avx512_bf16 avx512_fp16", None), ("avx512_bf16 amx_bf16", 0.50)],
)
def test_what_bfloat16_may_take_depends_on_the_processor(flags: str, limit: float | None) -> None:
    assert bfloat16_limit(f"vendor_id\t: GenuineIntel\nflags\t\t: {flags}\n") == limit


def test_cpu_flags_are_read_from_what_the_system_says() -> None:
    assert cpu_flags("processor\t: 0\nflags\t\t: fpu amx_bf16 avx2\n") == ["avx2", "amx_bf16"]


def test_the_cases_beside_keras_fit_keep_their_goals() -> None:
    assert {name: race.goals[0].limit for name, race in CASES.items()} == {
        "lenet-float32": 0.95, "cifar-float32": 0.70, "cifar-bfloat16": 0.55, "cifar-float16": 0.10,
    }


def test_the_page_has_markers_for_every_set_and_record() -> None:
    markers = re.findall(r"<!-- (\w+): begin -->", PAGE.read_text())
    pairs = [*tensor_operators.PAIRS.names, *prediction.PAIRS.names, *soak.NAMES]
    pairs += [*diagnostics_cost.NAMES, *tune_choices.NAMES, *one_device.NAMES, *scale.NAMES, *half_weights.NAMES]
    assert sorted(markers) == sorted([*SETS, "goals", cpu_ceiling.NAME, compare.NAME, sharded_memory.NAME, *pairs])


def test_the_page_of_scaling_has_markers_for_what_two_processes_cost() -> None:
    markers = re.findall(r"<!-- (\w+): begin -->", two_processes.SCALING.read_text())
    assert markers == list(two_processes.NAMES)


def test_changed_numbers_of_rounds_and_steps_reach_every_contender() -> None:
    race = SETS["lenet_half"].races[0]
    changed = race.changed(rounds=2, steps=1)
    assert changed.rounds == 2 and {changed.steps_of(one) for one in changed.contenders} == {1}
    quick = race.changed(quick=True)
    assert quick.rounds == 3 and quick.steps == 16
    assert sorted({quick.steps_of(one) for one in quick.contenders}) == [3, 16]
    assert race.changed() == race
