"""What a run shows by itself: its steps, those of them that were skipped, and what Keras callbacks are told of it."""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, LossMonitor, Model
from mixtrain.train.progress import skips_of
from mixtrain.train.records import StepRecords
from tests.backends import quick_every
from tests.train.planted import batches, chain_model

SHOWN = pytest.mark.parametrize("verbose", [1, 2], ids=["bar", "line"])


@quick_every(6, 1)
@SHOWN
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
def test_skipped_steps_are_told_with_the_scale(verbose: Any, sink: bool, capsys: pytest.CaptureFixture[str]) -> None:
    model = chain_model(DynamicLossScaleManager())
    model.train(1, batches("1111"), dataset_sink_mode=sink, verbose=verbose)
    printed = capsys.readouterr().out
    assert "4 of 4 steps skipped while the loss scale came down from 16777216 to 1048576" in printed
    assert "nan" not in printed and "skipped_steps" not in printed
    model.train(1, batches("00"), dataset_sink_mode=sink, verbose=verbose)
    printed = capsys.readouterr().out
    assert "loss_scale" in printed and "skipped" not in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "manager", "expected"),
    [
        ("1100000000", DynamicLossScaleManager(16, 2, 100), "2 of 10 {} while the loss scale came down from 16 to 4"),
        ("0001001", DynamicLossScaleManager(16, 2, 3), "2 of 7 {} while the loss scale moved between 8 and 32"),
        ("0110", FixedLossScaleManager(128), "2 of 4 {} at the loss scale 128"),
    ],
)
def test_a_line_for_each_way_of_the_scale(
    flags: str, manager: Any, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chain_model(manager).train(1, batches(flags), verbose=2)
    assert f", {expected.format('steps skipped')}\n" in capsys.readouterr().out


def test_the_scale_after_the_last_step_may_be_unknown() -> None:
    records = StepRecords(np.ones(3), np.array([True, True, False]), np.float32([8, 4, 2]))
    assert skips_of(records, None) == "2 of 3 steps skipped while the loss scale came down from 8 to 2"


@pytest.mark.slow
@SHOWN
def test_an_epoch_tells_how_many_steps_of_the_data_it_ran(verbose: Any, capsys: pytest.CaptureFixture[str]) -> None:
    model = chain_model(None)
    model.train(1, batches("0" * 64), dataset_sink_mode=True, sink_size=2, verbose=verbose)
    assert "epoch 1/1: 2 of 64 steps" in capsys.readouterr().out
    model.train(1, batches("0000"), dataset_sink_mode=True, verbose=verbose)
    model.train(1, batches("0000"), dataset_sink_mode=True, sink_size=6, verbose=verbose)
    printed = capsys.readouterr().out
    assert " of " not in printed
    assert verbose == 1 or ("1/1: 4 steps" in printed and "1/1: 6 steps" in printed)


def test_an_epoch_that_was_stopped_tells_its_steps(capsys: pytest.CaptureFixture[str]) -> None:
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.model.stop_training = batch == 2

    chain_model(None).train(1, batches("00000"), Stop(), verbose=2)
    assert "epoch 1/1: 3 of 5 steps" in capsys.readouterr().out


@quick_every(4)
@pytest.mark.parametrize(
    ("verbose", "terminal", "others", "expected"),
    [(0, True, [], 0), (1, False, [], 1), (2, True, [], 2), ("auto", True, [], 1), ("auto", False, [], 2),
     ("auto", True, [LossMonitor()], 0), (2, True, [LossMonitor()], 2)],
)
def test_keras_callbacks_are_told_what_the_run_shows(
    verbose: Any, terminal: bool, others: list[Any], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    look = keras.callbacks.Callback()
    chain_model(None).train(1, batches("0"), iter([*others, look]), verbose=verbose)
    assert look.params == {"verbose": expected, "epochs": 1, "steps": 1}


@pytest.mark.slow
def test_an_evaluation_shows_nothing() -> None:
    network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    look = keras.callbacks.Callback()
    model = Model(network, "mse", "sgd", metrics={"mae"})
    model.eval(batches("0"), look)
    assert look.params["verbose"] == 0
    model.fit(1, batches("0"), batches("0"), callbacks=look, verbose=2)
    assert look.params["verbose"] == 2
