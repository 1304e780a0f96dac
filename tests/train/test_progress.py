"""What a run shows by itself: its steps, those of them that were skipped, and what Keras callbacks are told of it."""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Callback, DynamicLossScaleManager, FixedLossScaleManager, LossMonitor, Model
from mixtrain.train import progress
from mixtrain.train.progress import skips_of
from mixtrain.train.records import StepRecords
from mixtrain.train.steps_per_call import StepsPerCall
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


@quick_every(3)
@pytest.mark.parametrize("feed", ["host", "groups", "sink"])
def test_the_bar_shows_the_mean_of_the_steps_so_far_as_keras_does(feed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[int, dict[str, float], bool]] = []

    def update(bar: Any, current: int, values: Any, finalize: bool = False) -> None:
        shown.append((current, dict(values), finalize))

    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_UPDATES", 0.0)
    monkeypatch.setattr(keras.utils.Progbar, "update", update)
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 3 if feed == "groups" else 1)
    x = np.linspace(-1, 1, 28, dtype=np.float32)[:, None]
    data = [(x[rows : rows + 8], 3 * x[rows : rows + 8]) for rows in range(0, 28, 8)]  # The last has 4 rows.

    def network() -> keras.Model:
        keras.utils.set_random_seed(2)
        return keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])

    model = Model(network(), "mse", keras.optimizers.SGD(0.2), metrics=["mae"])
    history = model.train(2, data, dataset_sink_mode=feed == "sink", verbose=1)
    theirs = network()
    theirs.compile(keras.optimizers.SGD(0.2), "mse", metrics=["mae"])
    logs: dict[tuple[int, int], Any] = {}  # By epoch and step: on JAX Keras may call in another order.
    for epoch in range(2):
        look = keras.callbacks.Callback()
        look.on_train_batch_end = lambda batch, logs, at=epoch, by=logs: by.update({(at, batch + 1): dict(logs)})
        theirs.fit(x, 3 * x, batch_size=8, shuffle=False, callbacks=look, verbose=0)
    epoch = 0
    for step, values, last in shown:
        assert values == pytest.approx(logs[epoch, step], rel=1e-5)
        epoch += last
    assert epoch == 2
    assert [values["loss"] for _, values, last in shown if last] == pytest.approx(history["loss"], rel=1e-6)


@pytest.mark.slow
def test_the_bar_leaves_skipped_steps_out(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[float] = []
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_UPDATES", 0.0)
    monkeypatch.setattr(
        keras.utils.Progbar, "update", lambda bar, current, values, finalize=False: shown.append(dict(values)["loss"])
    )
    losses: list[tuple[float, bool]] = []

    class Look(Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            results = run_context.original_args().step_results
            losses.extend(zip(results.loss.tolist(), results.overflow.tolist(), strict=True))

    chain_model(DynamicLossScaleManager(16, 2, 100)).train(1, batches("0100110"), Look(), verbose=1)
    applied: list[float] = []
    for (loss, skipped), value in zip(losses, shown, strict=False):
        applied += [] if skipped else [loss]
        assert value == pytest.approx(np.mean(applied), rel=1e-6)


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


def test_an_epoch_longer_than_a_minute_prints_a_line_each_minute_with_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Slow(Callback):
        """Lets each step take 25 seconds."""

        def on_train_step_begin(self, run_context: Any) -> None:
            now[0] += 25.0

    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    chain_model(None).train(1, batches("0" * 8), callbacks=Slow(), verbose=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(", loss")[0] for line in lines[:-1]] == [
        "epoch 1/1: step 3 of 8, 75 s, 125 s left", "epoch 1/1: step 6 of 8, 150 s, 50 s left"
    ]
    assert all(float(line.rpartition("loss ")[2]) > 0 for line in lines[:-1]) and "8 steps" in lines[-1]


def test_a_notebook_is_shown_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    chain_model(None).train(1, batches("00"))
    assert "2/2" in capsys.readouterr().out


def regression() -> tuple[Model, np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    return Model(network, "mse", "sgd", metrics=["mae"]), x, x[:, :1]


def test_an_evaluation_and_a_prediction_show_what_they_are_asked_to(capsys: pytest.CaptureFixture[str]) -> None:
    model, x, y = regression()
    loss, mae = model.evaluate(x, y, batch_size=10)
    model.predict(x, batch_size=10)
    assert capsys.readouterr().out == ""
    model.evaluate(x, y, batch_size=10, verbose=2)
    line = capsys.readouterr().out
    assert line.startswith("evaluation: 4 steps, ") and line.endswith(f" s, loss {loss:.6g}, mae {mae:.6g}\n")
    model.evaluate(x, y, batch_size=10, verbose=1)
    bar = capsys.readouterr().out
    assert "4/4" in bar and f"loss: {loss:.4f}" in bar and f"mae: {mae:.4f}" in bar
    model.predict(x, batch_size=10, verbose=1)
    assert "4/4" in capsys.readouterr().out
    for call in (lambda: model.evaluate(x, y, verbose=3), lambda: model.predict(x, verbose="yes")):
        with pytest.raises(ValueError, match="verbose must be one of"):
            call()
