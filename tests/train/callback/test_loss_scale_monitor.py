"""LossScaleMonitor: records, lines and summary, with host feed and sink feed alike; and its picture."""

from __future__ import annotations

import builtins
import pathlib
from typing import Any

import numpy as np
import pytest

from mixtrain.train.callback import LossScaleMonitor
from tests.train.callback.run import Manager, tell_run

INF = float("inf")
# Window 3, factor 2: an overflow, three clean steps and a growth, then a forward pass that is not finite.
RUN: dict[str, Any] = {
    "losses": [[4.0, 3.0, 2.0, 1.0], [0.5, INF, 0.25, 0.25]],
    "overflow": [[True, False, False, False], [False, True, False, False]],
    "scales": [[16.0, 8.0, 8.0, 8.0], [16.0, 16.0, 8.0, 8.0]],
}
SUMMARY = [
    "Loss scale: 8 at the end, 16 at first; 6 steps applied, 2 skipped, the scale grew 1 time.",
    "  step 1 (epoch 1): skipped, gradients overflowed at scale 16",
    "  step 6 (epoch 2): skipped, the loss itself was not finite: look at the inputs and the forward pass; a smaller "
    "scale cannot help",
    "  step 5 (epoch 2): scale grew from 8 to 16 after 3 steps without overflow",
]


def run(monitor: LossScaleMonitor, **changes: Any) -> None:
    options = {**RUN, **changes}
    tell_run(monitor, options.pop("losses"), **options)


@pytest.mark.parametrize("call", [1, 2, 4])
def test_every_step_is_recorded_whatever_the_feed(call: int, capsys: pytest.CaptureFixture[str]) -> None:
    monitor = LossScaleMonitor()
    run(monitor, call=call)
    records = monitor.records
    assert records.epoch.tolist() == [1, 1, 1, 1, 2, 2, 2, 2]
    assert records.step.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert records.loss.tolist() == [4.0, 3.0, 2.0, 1.0, 0.5, INF, 0.25, 0.25]
    assert records.loss_scale.tolist() == [16.0, 8.0, 8.0, 8.0, 16.0, 16.0, 8.0, 8.0]
    assert np.flatnonzero(records.overflow).tolist() == [0, 5]
    assert np.flatnonzero(records.applied).tolist() == [1, 2, 3, 4, 6, 7]
    assert len(records) == 8
    assert capsys.readouterr().out.splitlines() == SUMMARY


def test_the_scale_at_the_end_is_the_managers(capsys: pytest.CaptureFixture[str]) -> None:
    run(LossScaleMonitor(), loss_scale_manager=Manager(32.0))
    assert capsys.readouterr().out.startswith("Loss scale: 32 at the end, 16 at first;")


def test_lines_come_as_things_happen(capsys: pytest.CaptureFixture[str]) -> None:
    run(LossScaleMonitor(1))
    skipped, forward, grown = (line.strip() for line in SUMMARY[1:])
    assert capsys.readouterr().out.splitlines() == [skipped, grown, forward, *SUMMARY]


def test_lines_wait_for_the_next_look(capsys: pytest.CaptureFixture[str]) -> None:
    monitor = LossScaleMonitor(5)
    run(monitor)
    skipped, _, grown = (line.strip() for line in SUMMARY[1:])
    assert capsys.readouterr().out.splitlines() == [skipped, grown, *SUMMARY]


def test_long_runs_are_told_shortly(capsys: pytest.CaptureFixture[str]) -> None:
    count = 9
    tell_run(
        LossScaleMonitor(), [[1.0] * count], overflow=[[True] * count], scales=[[2.0 ** (20 - k) for k in range(count)]]
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "Loss scale: 4096 at the end, 1048576 at first; 0 steps applied, 9 skipped, the scale grew 0 times."
    )
    assert lines[5] == "  step 5 (epoch 1): skipped, gradients overflowed at scale 65536"
    assert lines[6:] == ["  ... and 4 more"]


def test_a_scale_lowered_without_a_skip_is_told() -> None:
    monitor = LossScaleMonitor()
    tell_run(monitor, [[1.0, 1.0]], overflow=[[False, False]], scales=[[8.0, 4.0]])
    assert monitor.summary().splitlines()[1] == "  step 2 (epoch 1): scale was lowered from 8 to 4"


def test_runs_without_skipping_show_the_managers_scale_or_one(capsys: pytest.CaptureFixture[str]) -> None:
    monitor = LossScaleMonitor()
    tell_run(monitor, [[1.0, 2.0]], loss_scale_manager=Manager(1024.0))
    assert monitor.records.loss_scale.tolist() == [1024.0, 1024.0]
    tell_run(monitor, [[1.0, 2.0]], loss_scale_manager=None)
    assert monitor.records.loss_scale.tolist() == [1.0, 1.0]
    assert capsys.readouterr().out.splitlines() == [
        "Loss scale: 1024 at the end, 1024 at first; 2 steps applied, 0 skipped, the scale grew 0 times.",
        "Loss scale: 1 at the end, 1 at first; 2 steps applied, 0 skipped, the scale grew 0 times.",
    ]


def test_evaluations_are_not_recorded() -> None:
    monitor = LossScaleMonitor()
    run(monitor, metrics=[{}, {}])
    assert len(monitor.records) == 8


def test_before_any_step_there_is_nothing_to_tell() -> None:
    monitor = LossScaleMonitor()
    assert monitor.summary() == "Loss scale: no steps."
    assert len(monitor.records) == 0


def test_the_picture_is_written_whole_or_not_at_all(tmp_path: pathlib.Path) -> None:
    monitor = LossScaleMonitor()
    run(monitor)
    figure = monitor.plot(tmp_path / "scale.png")
    assert (tmp_path / "scale.png").read_bytes().startswith(b"\x89PNG")
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss", "loss scale"]
    above, below = figure.axes
    np.testing.assert_array_equal(above.lines[0].get_ydata(), [np.nan, 3.0, 2.0, 1.0, 0.5, np.nan, 0.25, 0.25])
    assert below.lines[1].get_xdata().tolist() == [1, 6]
    with pytest.raises(ValueError, match="nonsense"):
        monitor.plot(tmp_path / "scale.nonsense")
    assert [path.name for path in tmp_path.iterdir()] == ["scale.png"]


def test_a_picture_without_a_path_is_only_returned(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monitor = LossScaleMonitor()
    run(monitor)
    assert len(monitor.plot().axes) == 2
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"Write pip install mixtrain\[plot\]"):
        LossScaleMonitor().plot()


@pytest.mark.parametrize(("times", "error"), [(-1, ValueError), (0.5, TypeError)])
def test_bad_arguments_are_refused(times: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="LossScaleMonitor: per_print_times must be"):
        LossScaleMonitor(times)
