"""Continuous integration: whole stages first, shares of the rest, one table, and every stage can be run by its name."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import pytest

from tests.ci import pipeline


def run(work: pathlib.Path, *stages: tuple[str, float | None], budget: float = 40.0) -> list[Any]:
    (work / "shell").mkdir(exist_ok=True)  # An environment that is there: none is created.
    return pipeline.Pipeline(budget, "seed", work).run([
        pipeline.Stage(name=command, command=command, environment="shell", weight=weight) for command, weight in stages
    ])


def test_a_stage_that_fails_does_not_end_the_run(tmp_path: pathlib.Path) -> None:
    results = run(tmp_path, ("exit 3", None), ("true", None), ("false | true", None))
    assert [result.verdict for result in results] == ["FAILED (3)", "passed", "FAILED (1)"]


def test_sampled_stages_get_minutes_by_weight_and_what_earlier_ones_left(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stages = (("true", None), ('echo "$PYTEST_ADDOPTS"', 3.0), ("echo $PYTEST_ADDOPTS", 1.0))
    results = run(tmp_path, *stages, budget=20.0)
    assert [result.share if result.share is None else round(result.share) for result in results] == [None, 15, 20]
    assert re.search(r"^--minutes=1[45]\.\d\d --sample=seed$", capfd.readouterr().out, flags=re.MULTILINE)


def test_with_no_minutes_left_each_sampled_stage_still_has_one(tmp_path: pathlib.Path) -> None:
    assert [result.share for result in run(tmp_path, ("true", 5.0), ("true", 1.0), budget=0.0)] == [1.0, 1.0]


def test_late_stages_are_not_started_and_the_verdict_is_that_of_the_others(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "LAST_START", 0.0)
    (result,) = run(tmp_path, ("exit 1", 1.0))
    assert result.verdict == "not started" and "not started" in pipeline.table([result]) and not result.failed
    (whole,) = run(tmp_path, ("true", None))
    assert whole.verdict == "not started" and whole.failed


@pytest.mark.parametrize("command", ["sleep 60 | cat", "setsid sleep 3 & sleep 60"])
def test_a_stage_that_hangs_is_stopped_and_has_failed(
    command: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "LAST_END", 0.01)
    (result,) = run(tmp_path, (command, None))
    assert result.verdict == "FAILED (stopped after 0 minutes of the run)" and result.minutes < 0.25


def test_what_a_stage_leaves_running_holds_nothing_up(tmp_path: pathlib.Path) -> None:
    (result,) = run(tmp_path, ("sleep 60 & echo done", None))
    assert result.verdict == "passed" and result.minutes < 0.25


def test_the_callers_environment_does_not_change_what_stages_run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in pipeline.DROPPED:
        monkeypatch.setenv(name, "other")
    (result,) = run(tmp_path, ('test -z "${KERAS_BACKEND-}${PYTEST_ADDOPTS-}${PYTHONPATH-}${FORCE_COLOR-}"', None))
    assert result.verdict == "passed", capfd.readouterr().out


def test_the_table_has_times_shares_and_closing_lines(tmp_path: pathlib.Path) -> None:
    lines = "echo '3 passed, 1 skipped in 2.34s'; echo 'left out: 5 tests in 2 files, of 9 files; more'"
    text = pipeline.table(run(tmp_path, ("true", None), (lines, 1.0)))
    assert re.search(r"^true +0\.\d +\d\.\d +whole  passed$", text, flags=re.MULTILINE)
    assert text.splitlines()[2].endswith("passed: 3 passed, 1 skipped, left out: 5 tests in 2 files, of 9 files")
    assert re.search(r"^total +0\.\d +\d\.\d$", text, flags=re.MULTILINE)


def test_the_first_lines_of_an_error_are_kept(tmp_path: pathlib.Path) -> None:
    lines = "echo '>   assert codes == 0'; for n in $(seq 50); do echo \"E     exit code $n\"; done; exit 1"
    (result,) = run(tmp_path, (lines, None))
    assert result.errors == tuple(f"exit code {n}" for n in range(1, 41))


def test_whole_stages_come_first_and_installs_before_what_needs_them() -> None:
    stages = pipeline.stages()
    sampled = [stage.weight is not None for stage in stages]
    assert sampled == sorted(sampled)
    assert {"README's tests", "lint", "types", "wheel"} <= {stage.name for stage in stages if stage.weight is None}
    assert len({stage.name for stage in stages}) == len(stages)
    only = pipeline._with_installs(stages, ["slow tests on JAX"])
    assert [stage.name for stage in only] == ["install on JAX", "slow tests on JAX"]


def test_an_unknown_stage_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        pipeline.main(["--only", "slow"])
    assert "--only must name stages; got ['slow']" in capsys.readouterr().err
