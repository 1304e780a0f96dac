"""TimeMonitor: the lines it prints, on a clock of the test's own."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from mixtrain.train.callback import Callback, TimeMonitor
from mixtrain.train.run_context import CallbackArguments, RunContext
from tests.train.callback.run import tell_run


class Clock:
    """A clock that a callback moves."""

    def __init__(self) -> None:
        self.now = 100.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    return clock


def passing(clock: Clock, **seconds: float) -> Callback:
    """Return a callback that lets time pass in the hooks named."""

    def hook(amount: float) -> Callable[..., None]:
        def run(self: Any, run_context: RunContext) -> None:
            clock.now += amount

        return run

    return type("Passing", (Callback,), {name: hook(amount) for name, amount in seconds.items()})()


def test_an_epoch_and_its_steps_are_timed(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    tell_run([passing(clock, on_train_step_end=0.25), TimeMonitor()], [[1.0, 1.0], [1.0, 1.0]])
    assert capsys.readouterr().out.splitlines() == [
        "Train epoch time: 500.000 ms, per step time: 250.000 ms",
        "Train epoch time: 500.000 ms, per step time: 250.000 ms",
    ]


def test_an_evaluation_is_timed_apart(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    slow = passing(clock, on_train_step_end=0.25, on_eval_step_end=2.0)
    tell_run([slow, TimeMonitor()], [[1.0, 1.0]], metrics=[{}])
    assert capsys.readouterr().out.splitlines() == [
        "Eval epoch time: 2000.000 ms, per step time: 2000.000 ms",
        "Train epoch time: 500.000 ms, per step time: 250.000 ms",
    ]


def test_the_wait_for_data_is_shown_where_it_is_asked_for(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = passing(clock, on_train_step_begin=0.125), passing(clock, on_train_step_end=0.25)
    tell_run([before, TimeMonitor(data_time=True), after], [[1.0, 1.0]])
    # The second step's wait begins after the first one's end, where the callback after the monitor lets time pass.
    assert capsys.readouterr().out.splitlines() == [
        "Train epoch time: 750.000 ms, per step time: 375.000 ms (data time: 250.000 ms)"
    ]


def test_sink_feed_shows_no_wait(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    tell_run([TimeMonitor(data_time=True)], [[1.0, 1.0]], call=2)
    assert capsys.readouterr().out.splitlines() == ["Train epoch time: 0.000 ms, per step time: 0.000 ms"]


def test_an_evaluation_alone_is_timed(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    monitor, context = TimeMonitor(), RunContext(CallbackArguments(mode="eval", batch_num=4))
    monitor.on_eval_epoch_begin(context)
    clock.now += 1.0
    monitor.on_eval_epoch_end(context)
    assert capsys.readouterr().out == "Eval epoch time: 1000.000 ms, per step time: 250.000 ms\n"


def test_the_runs_own_size_goes_before_data_size(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    monitor = TimeMonitor(data_size=10)
    for fields in ({"batch_num": 2}, {"batch_num": 0}, {}):
        context = RunContext(CallbackArguments(mode="train", **fields))
        monitor.epoch_begin(context)
        clock.now += 1.0
        monitor.epoch_end(context)
    assert [line.rpartition("time: ")[2] for line in capsys.readouterr().out.splitlines()] == [
        "500.000 ms", "100.000 ms", "100.000 ms",
    ]


def test_an_unknown_size_needs_data_size() -> None:
    with pytest.raises(ValueError, match="data_size is needed where the dataset's size is unknown"):
        TimeMonitor().epoch_end(RunContext(CallbackArguments(mode="train", batch_num=0)))


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="data_time must be True or False"):
        TimeMonitor(data_time=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="data_size must be at least 1"):
        TimeMonitor(0)
