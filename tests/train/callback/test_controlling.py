"""What callbacks that control a run, take functions or keep notes do beside the reference's decisions."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Model, backend, nn
from mixtrain.train.callback import EarlyStopping, History, LambdaCallback, LearningRateScheduler, ReduceLROnPlateau
from mixtrain.train.run_context import RunContext
from tests.backends import quick_every
from tests.optim.setting import parameter
from tests.train.callback.run import tell_run

DATA = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.25], [1.0, 1.0]], np.float32)
BATCHES = [(DATA, DATA[:, :1]), (-DATA, DATA[:, :1])]


def _model(kind: str, rate: float = 0.125) -> Model:
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    own = nn.Momentum(net.trainable_params(), rate, 0.5)
    optimizer: Any = own if kind == "mixtrain" else keras.optimizers.SGD(rate, momentum=0.5)
    return Model(net, nn.MSELoss(), optimizer, metrics={"mae"})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mixtrain", "keras"])
def test_the_values_of_the_best_epoch_are_put_back_with_the_optimizer(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = _model(kind, rate=8.0)  # too high: every epoch is worse than the first
    stopping = EarlyStopping("eval_loss", patience=2, restore_best_weights=True, verbose=True)
    history = model.fit(9, BATCHES, BATCHES, callbacks=stopping, verbose=0)
    assert len(history["loss"]) == stopping.stopped_epoch == 3
    once = _model(kind, rate=8.0)
    once.train(1, BATCHES, verbose=0)
    result, expected = (
        [backend.to_numpy(v) for v in item.train_network.driver.state_variables()] for item in (model, once)
    )
    np.testing.assert_equal(result, expected)
    assert model.predict_network.weight.asnumpy().tolist() == once.predict_network.weight.asnumpy().tolist()
    assert capsys.readouterr().out == "Restoring the values of the best epoch.\nEpoch 00003: early stopping\n"


@quick_every(3)
@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize("kind", ["mixtrain", "keras"])
def test_a_rate_that_a_callback_sets_is_that_of_the_next_step(kind: str, sink: bool) -> None:
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    weights = []

    def stop_moving(rate: float, step: int) -> float:
        weights.append(net.weight.asnumpy().tolist())
        return 0.0 if step >= 2 else rate

    options: dict[str, Any] = {"dataset_sink_mode": sink, "sink_size": 1 if sink else -1}
    plain: Any = nn.SGD(net.trainable_params(), 0.125) if kind == "mixtrain" else keras.optimizers.SGD(0.125)
    model = Model(net, nn.MSELoss(), plain)
    model.train(4 if sink else 2, BATCHES, LearningRateScheduler(stop_moving), **options, verbose=0)
    assert len(weights) == 4
    assert weights[0] != weights[1] == weights[2] == weights[3]


def test_steps_that_were_skipped_are_no_loss_to_watch() -> None:
    stopping = EarlyStopping("loss", patience=2)
    with pytest.warns(UserWarning, match="EarlyStopping: monitor='loss' has no value in epoch 2"):
        tell_run(stopping, [[1.0, 9.0], [9.0]], overflow=[[False, True], [True]], scales=[[2.0, 2.0], [2.0]], call=2)
    assert (stopping.best, stopping.wait) == (1.0, 0)


@pytest.mark.parametrize("make", [EarlyStopping, ReduceLROnPlateau])
def test_a_value_that_is_not_there_is_told_of_and_nothing_decided(make: Any) -> None:
    optimizer = keras.optimizers.SGD(0.5)
    with pytest.warns(UserWarning, match="monitor='eval_loss' has no value in epoch 1.*there are loss, accuracy"):
        context = tell_run(make(patience=0), [[1.0]], metrics=[{"accuracy": 0.5}], optimizer=optimizer)
    assert not context.get_stop_requested()
    assert float(optimizer.learning_rate) == 0.5


def test_zero_is_a_value() -> None:
    stopping = EarlyStopping("accuracy", patience=1)
    context = tell_run(stopping, [[1.0]] * 3, metrics=[{"accuracy": value} for value in (0.5, 0.0, 0.75)])
    assert context.original_args().cur_epoch_num == 2


def test_a_value_that_is_no_scalar_is_refused() -> None:
    with pytest.raises(ValueError, match="EarlyStopping: monitor='roc' must be a scalar"):
        tell_run(EarlyStopping("roc"), [[1.0]], metrics=[{"roc": np.ones(2)}])


def test_a_reduction_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    reduce = ReduceLROnPlateau("loss", factor=0.5, patience=1, verbose=True)
    tell_run(reduce, [[1.0], [1.0]], optimizer=keras.optimizers.SGD(0.5))
    assert capsys.readouterr().out == "Epoch 00002: ReduceLROnPlateau reducing learning rate to 0.25.\n"


@pytest.mark.parametrize("callback", [ReduceLROnPlateau("loss"), LearningRateScheduler(lambda rate, step: rate)])
@pytest.mark.parametrize("kind", ["schedule", "list", "groups", "none"])
def test_a_rate_that_cannot_be_set_is_refused(callback: Any, kind: str) -> None:
    schedule = keras.optimizers.schedules.ExponentialDecay(0.5, 1, 0.5)
    groups = [{"params": [parameter("w", 1.0)], "lr": 0.5}, {"params": [parameter("v", 1.0)]}]
    optimizer = {
        "schedule": lambda: keras.optimizers.SGD(schedule),
        "list": lambda: nn.SGD([parameter("w", 1.0)], [0.5, 0.25]),
        "groups": lambda: nn.SGD(groups, 0.25),
        "none": lambda: None,
    }[kind]()
    shown = {"list": "a schedule", "groups": "one for each group"}.get(kind, kind)
    shown = "a schedule" if kind == "schedule" else shown
    with pytest.raises(ValueError, match=f"expected an optimizer with one learning rate that can be set; got {shown}"):
        tell_run(callback, [[1.0]], optimizer=optimizer)


def test_history_keeps_epochs_outputs_and_metrics() -> None:
    history = History()
    model = _model("mixtrain")
    model.fit(2, BATCHES, BATCHES, callbacks=history, verbose=0)
    assert history.epoch == {"epoch": [1, 2]}
    assert set(history.history) == {"net_output", "mae"}
    model.train(1, BATCHES, history, verbose=0)
    assert history.epoch == {"epoch": [1]}
    assert [len(values) for values in history.history.values()] == [3, 2]


def test_functions_are_called_where_they_are_given_for() -> None:
    said: list[str] = []
    names = ["on_train_begin", "on_train_step_end", "on_eval_end", "on_train_end"]
    functions: dict[str, Any] = {name: lambda context, name=name: said.append(name) for name in names}
    tell_run(LambdaCallback(**functions), [[1.0, 1.0]], metrics=[{"accuracy": 0.5}])
    assert said == ["on_train_begin", "on_train_step_end", "on_train_step_end", "on_eval_end", "on_train_end"]


def test_functions_are_taken_by_place_as_in_mindspore() -> None:
    said: list[int] = []
    LambdaCallback(None, lambda context: said.append(context.original_args().cur_epoch_num)).on_train_epoch_end(
        RunContext({"cur_epoch_num": 4})
    )
    assert said == [4]


@pytest.mark.parametrize(
    ("make", "options", "error"),
    [
        (EarlyStopping, {"monitor": 1}, TypeError),
        (EarlyStopping, {"mode": "up"}, ValueError),
        (EarlyStopping, {"patience": -1}, ValueError),
        (EarlyStopping, {"min_delta": "0"}, TypeError),
        (EarlyStopping, {"baseline": "0"}, TypeError),
        (EarlyStopping, {"verbose": 1}, TypeError),
        (EarlyStopping, {"restore_best_weights": 1}, TypeError),
        (ReduceLROnPlateau, {"factor": 1.0}, ValueError),
        (ReduceLROnPlateau, {"factor": 0.0}, ValueError),
        (ReduceLROnPlateau, {"cooldown": -1}, ValueError),
        (ReduceLROnPlateau, {"min_lr": "0"}, TypeError),
        (LearningRateScheduler, {"learning_rate_function": 0.1}, TypeError),
        (LambdaCallback, {"on_train_end": 1}, TypeError),
    ],
)
def test_wrong_arguments_are_refused(make: Any, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=rf"^{make.__name__}: .*; got .*\. Write "):
        make(**options)


def test_a_function_that_returns_no_number_is_named() -> None:
    wrong: Any = LearningRateScheduler(lambda rate, step: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="what learning_rate_function returns must be a number"):
        tell_run(wrong, [[1.0]], optimizer=keras.optimizers.SGD(0.5))


def test_nothing_is_left_in_the_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _model("keras").train(1, BATCHES, [EarlyStopping("loss"), History()], verbose=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", ["auto", "min", "max"])
def test_nan_is_never_the_best(mode: Any) -> None:
    values = [0.5, 0.75] if mode == "max" else [0.75, 0.5]
    rows = [{"mae": value} for value in (np.nan, np.nan, *values, np.nan)]
    stopping = EarlyStopping("mae", mode=mode, patience=3)
    optimizer = keras.optimizers.SGD(1.0)
    reducing = ReduceLROnPlateau("mae", mode=mode, patience=2, factor=0.5)
    context = tell_run([stopping, reducing], [[1.0]] * 5, metrics=rows, optimizer=optimizer)
    # Each nan is an epoch without improvement: the first two reduce the rate.
    assert stopping.best == reducing.best == values[1] and not context.get_stop_requested()
    assert stopping.wait == reducing.wait == 1 and float(optimizer.learning_rate) == 0.5
