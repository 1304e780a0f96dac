"""A set from end to end: contenders of this process and a fake peer, the record, the page and the command line."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import pytest

import benchmarks.__main__ as command
from benchmarks import keras_fit
from benchmarks.children import Child, ChildFailed, Interpreters
from benchmarks.contender import Contender, Kind, build
from benchmarks.goals import Goal
from benchmarks.race import Race
from benchmarks.run import run_set
from benchmarks.sets import SETS
from benchmarks.table import NOT_RUN, PAGE, as_markdown, goals_as_markdown, update_section
from benchmarks.workloads import LENET, MLP
from benchmarks.written import RESULTS, read_records, rounded
from tests.backends import quick_every
from tests.benchmarks.test_children import FAKE

OURS, PEER, TORCH = Contender("ours", "mixtrain"), Contender("peer", "keras"), Contender("torch's", "pytorch")
RACE = Race(
    MLP,
    (PEER, TORCH, OURS),
    steps=2,
    rounds=2,
    goals=(Goal("ours against peer", "ours", "peer", 0.5), Goal("ours against torch's", "ours", "torch's", 0.5)),
)


@pytest.fixture
def page(tmp_path: pathlib.Path) -> pathlib.Path:
    """A page with markers."""
    path = tmp_path / "page.md"
    path.write_text("".join(f"# {name}\n<!-- {name}: begin -->\n<!-- {name}: end -->\n" for name in ("mlp", "goals")))
    return path


@pytest.fixture
def fake_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contenders of this process take known times, and a peer's process is the fake one."""

    def fake_timed(train: Callable[[], Any]) -> float:
        return float(train())

    def fake_build(contender: Contender, workload: Any, steps: int) -> Callable[[], Callable[[], float]]:
        seconds = {"ours": 0.002, "peer": 0.008}[contender.name]
        return lambda: lambda: seconds

    monkeypatch.setattr("benchmarks.step_time.timed", fake_timed)
    monkeypatch.setattr("benchmarks.step_time.build", fake_build)
    monkeypatch.setattr(
        "benchmarks.step_time.start_child", lambda *_: Child([sys.executable, "-c", FAKE], "torch's")
    )


def run(page: pathlib.Path, interpreters: Interpreters, *, write: bool = True) -> dict[str, Any]:
    """Run the race as the set "mlp"."""
    return run_set("mlp", [RACE], interpreters, write=write, folder=page.parent / "results", page=page)


@pytest.mark.usefixtures("fake_training")
def test_a_set_writes_its_record_and_its_tables(page: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = run(page, Interpreters({"torch": "secret/python"}))
    (race,) = record["races"]
    rows = {row["name"]: row for row in race["contenders"]}
    assert list(rows) == ["peer", "torch's", "ours"]
    assert rows["ours"]["median"] == 1.0 and rows["ours"]["samples_per_second"] == 32_000
    assert [goal["measured"] for goal in race["goals"]][0] == 0.25
    assert record["versions"]["fake"] == "1.0" and "keras" in record["versions"]
    assert {"cpu", "cpu_flags", "cores", "device", "python"} <= set(record["surroundings"])
    assert set(record["load_average"]) == {"before", "after"}

    text = (page.parent / "results" / "mlp.json").read_text()
    assert json.loads(text) == record and "secret" not in text
    assert read_records(["lenet", "mlp"], page.parent / "results") == [record]
    written = page.read_text()
    assert as_markdown(record) in written
    assert "| ours against peer | 0.250 | 0.250 to 0.250 | <= 0.50 | met |" in written
    assert "2 of 2 goals were met." in written
    assert as_markdown(record) in capsys.readouterr().out


@pytest.mark.usefixtures("fake_training")
def test_a_peer_that_is_not_found_is_left_out_and_said(page: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Interpreters, "of", lambda self, package: None if package else sys.executable)
    before = page.read_text()
    record = run(page, Interpreters(), write=False)
    assert page.read_text() == before and not (page.parent / "results").exists()
    text = as_markdown(record)
    assert "| ours against torch's | not measured |  | <= 0.50 |  |" in text
    assert "Not measured: torch's: torch is not installed here. Write --torch-python PATH" in text
    assert "1 of 2 goals were met." in goals_as_markdown([record])


@pytest.mark.usefixtures("fake_training")
def test_a_peer_that_falls_is_left_out_and_its_last_words_are_printed_but_not_recorded(
    page: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fall(self: Child) -> float:
        raise ChildFailed("benchmarks: the process of torch's ended (1):\nno such thing")

    monkeypatch.setattr(Child, "prepare", fall)
    record = run(page, Interpreters({"torch": "theirs"}), write=False)
    assert record["races"][0]["missing"]["torch's"].startswith("its process ended")
    assert "no such thing" in capsys.readouterr().err


KINDS = [
    Contender("Keras fit", "keras"),
    Contender("Keras fit, two steps per call", "keras", steps_per_execution=2),
    pytest.param(Contender("host loop", "loop"), marks=pytest.mark.tensorflow),
    pytest.param(Contender("graph loop", "loop", sink=True), marks=pytest.mark.tensorflow),
    Contender("ours", "mixtrain", scaling="none", callback=True),
    Contender("ours, sink", "mixtrain", scaling="dynamic", sink=True),
    Contender("ours, half", "mixtrain", "bfloat16", scaling="fixed"),
    Contender("ours, auto", "mixtrain", level="auto"),
    Contender("ours, Cell", "mixtrain cell"),
    Contender("ours, script", "mixtrain script"),
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mixtrain data", "tf.data"])
def test_pipelines_go_through_the_files_round_after_round(kind: Kind) -> None:
    run = build(Contender(kind, kind), dataclasses.replace(LENET, shape=(32, 32, 3)), 33)()
    run()
    run()


@quick_every(12)
@pytest.mark.parametrize("contender", KINDS, ids=lambda contender: contender.name)
def test_every_kind_of_contender_trains_round_after_round(
    contender: Contender, capsys: pytest.CaptureFixture[str]
) -> None:
    train = build(contender, MLP, 2)()
    train()
    train()
    assert capsys.readouterr().out == ""


def test_a_page_without_markers_is_refused(page: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="must hold the markers <!-- lenet: begin -->"):
        update_section("lenet", "text", page)


def test_floats_are_recorded_to_five_digits_and_what_is_no_number_as_null() -> None:
    assert rounded({"a": (1.234567, math.nan), "b": "text", "c": 3}) == {"a": [1.2346, None], "b": "text", "c": 3}
    assert goals_as_markdown([]) == NOT_RUN


def test_the_command_names_the_sets_and_runs_those_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs: list[tuple[str, int, bool]] = []

    def fake_run(name: str, races: list[Race], interpreters: Interpreters, *, write: bool) -> dict[str, Any]:
        runs.append((name, races[0].rounds, write))
        return {"races": []}

    monkeypatch.setattr(command, "run_set", fake_run)
    command.main(["--list"])
    assert "lenet_half" in capsys.readouterr().out and runs == []
    command.main(["--set", "mlp", "cifar", "--rounds", "2"])
    command.main(["--set", "memory", "--quick"])
    assert runs == [("mlp", 2, True), ("cifar", 2, True), ("memory", 3, False)]
    for wrong in (["--rounds", "0"], ["--torch-python", "no/such/python"]):
        with pytest.raises(SystemExit):
            command.main(wrong)


def test_one_case_beside_keras_fit_is_printed_and_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[list[Race], bool]] = []
    monkeypatch.setattr(keras_fit, "run_set", lambda name, races, where, *, write: runs.append((races, write)))
    with pytest.raises(SystemExit):
        keras_fit.main(["--case", "cifar-float16"])
    keras_fit.main(["--case", "cifar-float16", "--steps", "3", "--keras-jit", "on", "--print-only"])
    ((race,), write), = runs
    assert not write and race.steps == 3 and race.contenders[0].jit is True


def test_the_page_shows_the_records() -> None:
    records = read_records(list(SETS), RESULTS)
    text = PAGE.read_text()
    assert len(records) >= 12
    for record in records:
        assert as_markdown(record) in text, record["set"]
    assert goals_as_markdown(records) in text
