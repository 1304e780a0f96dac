"""LossMonitor: exactly what is printed when, and losses that are no numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from mixtrain.common.tensor import Tensor
from mixtrain.train.callback import LossMonitor
from mixtrain.train.run_context import CallbackArguments, RunContext
from tests.train.callback.run import tell_run

NAN, INF = float("nan"), float("inf")


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_every_step_is_printed_in_the_shortest_float32_form(capsys: pytest.CaptureFixture[str]) -> None:
    tell_run(LossMonitor(), [[2.3018966, 0.1], [1.0, 1e-8]])
    assert printed(capsys) == [
        "epoch: 1 step: 1, loss is 2.3018966",
        "epoch: 1 step: 2, loss is 0.1",
        "epoch: 2 step: 1, loss is 1.0",
        "epoch: 2 step: 2, loss is 1e-08",
    ]


def test_steps_between_prints_are_counted_across_epochs(capsys: pytest.CaptureFixture[str]) -> None:
    tell_run(LossMonitor(3), [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    assert printed(capsys) == ["epoch: 1 step: 3, loss is 3.0", "epoch: 2 step: 2, loss is 6.0"]


def test_zero_prints_no_steps(capsys: pytest.CaptureFixture[str]) -> None:
    tell_run(LossMonitor(0), [[1.0]])
    assert printed(capsys) == []


def test_a_second_run_counts_anew(capsys: pytest.CaptureFixture[str]) -> None:
    monitor = LossMonitor(2)
    for _ in range(2):
        tell_run(monitor, [[1.0, 2.0, 3.0]])
    assert printed(capsys) == ["epoch: 1 step: 2, loss is 2.0"] * 2


def test_sink_feed_prints_the_last_step_of_a_call(capsys: pytest.CaptureFixture[str]) -> None:
    tell_run(LossMonitor(), [[1.0, 2.0, 3.0, 4.0]], call=4)
    assert printed(capsys) == ["epoch: 1 step: 4, loss is 4.0"]


def test_metrics_are_printed_after_an_epoch_with_an_evaluation(capsys: pytest.CaptureFixture[str]) -> None:
    tell_run(LossMonitor(0), [[1.0]], metrics=[{"accuracy": np.float64(0.5), "loss": 2.0}])
    assert printed(capsys) == ["Eval result: epoch 1, metrics: {'accuracy': 0.5, 'loss': 2.0}"]


@pytest.mark.parametrize("per_print_times", [0, 1])
@pytest.mark.parametrize("loss", [NAN, INF])
def test_a_loss_that_is_no_number_ends_the_run(per_print_times: int, loss: float) -> None:
    message = f"In epoch: 2 step: 1, loss is NAN or INF: expected a finite loss; got {loss}"
    with pytest.raises(ValueError, match=message):
        tell_run(LossMonitor(per_print_times), [[1.0, 1.0], [loss, 1.0]])


def test_the_step_inside_a_call_is_named() -> None:
    with pytest.raises(ValueError, match="In epoch: 1 step: 3, loss is NAN or INF"):
        tell_run(LossMonitor(), [[1.0, 1.0, INF, 1.0]], call=4)


def test_a_skipped_step_is_printed_and_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    tell_run(
        LossMonitor(), [[2.5, INF, 2.0]], overflow=[[True, True, False]], scales=[[2.0**24, 2.0**23, 2.0**22]]
    )
    assert printed(capsys) == [
        "epoch: 1 step: 1, loss is 2.5, step skipped: overflow at loss scale 16777216",
        "epoch: 1 step: 2, loss is inf, step skipped: overflow at loss scale 8388608",
        "epoch: 1 step: 3, loss is 2.0",
    ]


def test_an_applied_step_without_a_number_is_an_error_with_scaling_too() -> None:
    with pytest.raises(ValueError, match="In epoch: 1 step: 2"):
        tell_run(LossMonitor(), [[1.0, NAN]], overflow=[[False, False]], scales=[[1.0, 1.0]])


@pytest.mark.parametrize(
    ("outputs", "line"),
    [
        (Tensor(0.25), "epoch: 1 step: 1, loss is 0.25"),
        (Tensor([0.25, 0.75]), "epoch: 1 step: 1, loss is 0.5"),
        ((Tensor(0.25), Tensor([1.0, 2.0])), "epoch: 1 step: 1, loss is 0.25"),
        ((Tensor(NAN), Tensor(1.0)), "epoch: 1 step: 1, loss is nan"),
        (
            (Tensor(0.25), Tensor(True), Tensor(8.0)),
            "epoch: 1 step: 1, loss is 0.25, step skipped: overflow at loss scale 8",
        ),
    ],
)
def test_outputs_of_the_users_own_train_networks(outputs: Any, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = CallbackArguments(cur_epoch_num=1, cur_step_num=1, batch_num=1, net_outputs=outputs)
    LossMonitor().step_end(RunContext(arguments))
    assert printed(capsys) == [line]


def test_a_subclass_may_print_in_its_own_way(capsys: pytest.CaptureFixture[str]) -> None:
    class Mine(LossMonitor):
        def step_end(self, run_context: RunContext) -> None:
            super().step_end(run_context)
            arguments = run_context.original_args()
            if self._per_print_times != 0 and arguments.cur_step_num % self._per_print_times == 0:
                print("mine", float(np.mean(arguments.net_outputs)))

    tell_run(Mine(), [[0.5]], metrics=[{}])
    assert printed(capsys) == ["epoch: 1 step: 1, loss is 0.5", "mine 0.5"]


@pytest.mark.parametrize(("times", "error"), [(-1, ValueError), (1.0, TypeError), (True, TypeError)])
def test_bad_arguments_are_refused(times: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=re.escape("LossMonitor: per_print_times must be")):
        LossMonitor(times)
