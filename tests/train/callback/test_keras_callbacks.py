"""Keras's own callbacks in real runs: Cells and Keras networks, host feed and sink feed, and beside Keras's `fit`."""

from __future__ import annotations

import csv
import importlib.util
import json
import pathlib
import warnings
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model, backend, nn, train
from mixtrain.serialization.run_state import take_run_state
from tests.backends import on_jax_only_some, quick_every
from tests.train.events import numbers

# Keras's TensorBoard writes by TensorFlow, whatever the backend.
HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
FEEDS = pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
KINDS = pytest.mark.parametrize("cell", [True, False], ids=["cell", "keras"])

_draw = np.random.default_rng(3)
WEIGHT, BIAS = _draw.standard_normal((3, 1)).astype(np.float32), np.zeros(1, np.float32)
DATA = _draw.standard_normal((24, 3)).astype(np.float32)
LABEL = (DATA @ np.array([[1.0], [-2.0], [0.5]], np.float32)).astype(np.float32)
BATCHES = [(DATA[i: i + 8], LABEL[i: i + 8]) for i in range(0, 24, 8)]
VALID = [(DATA[:8] * 2, LABEL[:8])]


def _keras_network() -> keras.Model:
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    network.set_weights([WEIGHT, BIAS])
    return network


def _network(cell: bool) -> Any:
    if not cell:
        return _keras_network()
    network: Any = nn.Dense(3, 1)
    network.weight.set_data(WEIGHT.T)
    network.bias.set_data(BIAS)
    return network


def _model(network: Any, rate: float = 0.125, own: bool = False, **options: Any) -> Model:
    if own:
        weights = network.trainable_params() if isinstance(network, nn.Cell) else network.trainable_variables
        optimizer: Any = nn.SGD(weights, rate)
    else:
        optimizer = keras.optimizers.SGD(rate)
    return Model(network, nn.MSELoss(), optimizer, metrics={"mae"}, **options)


def _rows(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def _callbacks(folder: pathlib.Path) -> list[Any]:
    return [
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * (2.0 if epoch == 1 else 1.0)),
        keras.callbacks.ReduceLROnPlateau("val_mae", factor=0.25, patience=1, min_delta=0.0625),
        keras.callbacks.EarlyStopping("val_loss", patience=2, min_delta=0.03125, restore_best_weights=True),
        keras.callbacks.ModelCheckpoint(
            folder / "best.weights.h5", "val_loss", save_best_only=True, save_weights_only=True
        ),
        keras.callbacks.CSVLogger(folder / "log.csv"),
        keras.callbacks.TerminateOnNaN(),
        keras.callbacks.LambdaCallback(on_train_end=lambda logs: (folder / "end").write_text(str(sorted(logs)))),
    ]


@pytest.fixture(scope="module")
def of_keras(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, str]], list[np.ndarray]]:
    """The log and the weights of a run of Keras's own."""
    folder = tmp_path_factory.mktemp("keras")
    network = _keras_network()
    network.compile(keras.optimizers.SGD(0.125), "mse", metrics=["mae"], jit_compile=False)
    network.fit(
        DATA, LABEL, batch_size=8, epochs=12, shuffle=False, validation_data=VALID[0], verbose=0,
        callbacks=_callbacks(folder),
    )
    return _rows(folder / "log.csv"), network.get_weights()


@pytest.mark.slow
@FEEDS
@pytest.mark.parametrize(
    ("cell", "own"), [(True, False), (True, True), (False, False), (False, True)],
    ids=["cell-keras_sgd", "cell-mixtrain_sgd", "keras-keras_sgd", "keras-mixtrain_sgd"],
)
def test_they_do_what_they_do_in_keras_fit(
    cell: bool, own: bool, sink: bool, of_keras: tuple[Any, Any], tmp_path: pathlib.Path
) -> None:
    network = _network(cell)
    model = _model(network, own=own)
    history = model.fit(12, BATCHES, VALID, callbacks=_callbacks(tmp_path), dataset_sink_mode=sink, verbose=0)

    (theirs, their_weights), ours = of_keras, _rows(tmp_path / "log.csv")
    assert 2 < len(theirs) < 12  # it was stopped early
    assert len(ours) == len(theirs) == len(history["loss"])
    for name in ("loss", "val_loss", "val_mae", "learning_rate"):
        expected, result = ([float(row[name]) for row in rows] for rows in (theirs, ours))
        np.testing.assert_allclose(result, expected, rtol=2e-5, err_msg=name)
    weights = network.get_weights() if not cell else [network.weight.asnumpy().T, network.bias.asnumpy()]
    for result, expected in zip(weights, their_weights, strict=True):
        np.testing.assert_allclose(result, expected, atol=1e-5)
    assert (tmp_path / "best.weights.h5").exists()
    assert (tmp_path / "end").read_text() == str(["learning_rate", "loss", "val_loss", "val_mae"])


def test_a_keras_network_is_saved_whole_while_it_trains(tmp_path: pathlib.Path) -> None:
    network = _keras_network()
    callback = keras.callbacks.ModelCheckpoint(tmp_path / "e{epoch}-{val_mae:.2f}.keras", save_freq="epoch")
    history = _model(network).fit(2, BATCHES, VALID, callbacks=callback, verbose=0)
    name = f"e2-{history['val_mae'][-1]:.2f}.keras"
    loaded = keras.saving.load_model(tmp_path / name)
    np.testing.assert_array_equal(loaded.get_weights()[0], network.get_weights()[0])


def _state(model: Model) -> list[np.ndarray]:
    """Return the optimizer's slots, the counts of loss scaling and the states of random numbers."""
    cell = model.train_network
    counts = take_run_state(cell, {}).arrays
    return [*map(backend.to_numpy, cell.driver.state_variables()), *(counts[name] for name in sorted(counts))]


class BreakOff(keras.callbacks.Callback):
    """Ends a run with an error as its third epoch begins."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == 2:
            raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "sink", "own"),
    [(True, False, False), (False, True, False), (False, False, True)],
    ids=["cell-host", "keras-sink", "keras-host-mixtrain_momentum"],
)
def test_a_run_that_broke_off_goes_on_from_keras_backup(
    cell: bool, own: bool, sink: bool, tmp_path: pathlib.Path
) -> None:
    """At O2 in float16, interrupted where one step of the three was good after which the scale grows."""

    def model() -> Model:
        network = _network(cell)
        optimizer = nn.Momentum(network.trainable_variables, 0.05, 0.5) if own else keras.optimizers.Adam(0.05)
        manager = DynamicLossScaleManager(init_loss_scale=2.0**26, scale_factor=2.0**20, scale_window=3)
        return Model(network, nn.MSELoss(), optimizer, amp_level="O2", loss_scale_manager=manager)

    straight = model()
    whole = straight.train(4, BATCHES, dataset_sink_mode=sink, verbose=0)
    assert whole["skipped_steps"] == [1, 1, 1, 0] and whole["loss_scale"] == [64.0, 64.0, 2.0**26, 64.0]

    folder = tmp_path / "backup"
    backup = keras.callbacks.BackupAndRestore(folder)
    with pytest.raises(KeyboardInterrupt):
        model().train(4, BATCHES, [backup, BreakOff()], dataset_sink_mode=sink, verbose=0)
    assert json.loads((folder / "training_metadata.json").read_text())["epoch"] == 2
    assert (folder / "mixtrain.ckpt").exists() != cell, "a Cell's own file holds everything"
    resumed = model()
    rest = resumed.train(4, BATCHES, keras.callbacks.BackupAndRestore(folder), dataset_sink_mode=sink, verbose=0)
    assert rest.epoch == [3, 4]
    assert dict(rest) == {name: values[2:] for name, values in whole.items()}
    for result, expected in zip(_state(resumed), _state(straight), strict=True):
        np.testing.assert_array_equal(result, expected)
    assert not folder.exists()


@pytest.mark.slow
def test_a_backup_without_its_loss_scale_says_so(tmp_path: pathlib.Path) -> None:
    def model() -> Model:
        return _model(_network(False), loss_scale_manager=DynamicLossScaleManager(16.0))

    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
    with pytest.raises(KeyboardInterrupt):
        model().train(3, BATCHES, [backup, BreakOff()], verbose=0)
    (tmp_path / "backup" / "mixtrain.ckpt").unlink()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert model().train(3, BATCHES, backup, verbose=0).epoch == [3]
    assert "Keras's file holds no loss scale" in str([warning.message for warning in caught])


class Written:
    """Stands in for the functions of TensorBoard's own package: keeps what they are given, by tag and step."""

    def __init__(self) -> None:
        self.scalars: dict[str, dict[int, float]] = {}
        self.histograms: set[str] = set()

    def scalar(self, name: str, data: Any, step: int) -> None:
        self.scalars.setdefault(name, {})[int(step)] = float(data)

    def histogram(self, name: str, data: Any, step: int) -> None:
        self.histograms.add(name)


def _all_of_keras(folder: pathlib.Path, cell: bool) -> list[Any]:
    callbacks = [*_callbacks(folder), keras.callbacks.History(), keras.callbacks.BackupAndRestore(folder / "backup")]
    for freq in ("epoch", 2):
        name = f"{freq}-{{epoch}}-{{loss:.3f}}.weights.h5"
        callbacks.append(keras.callbacks.ModelCheckpoint(folder / name, save_freq=freq, save_weights_only=True))
    if not cell:
        callbacks.append(keras.callbacks.ModelCheckpoint(folder / "whole.keras", "val_mae", save_best_only=True))
    return callbacks


def _all_of_ours(folder: pathlib.Path) -> list[Any]:
    return [
        train.LossMonitor(), train.TimeMonitor(), train.LossScaleMonitor(), train.History(),
        train.SummaryCollector(folder / "summary", collect_freq=2), train.ModelCheckpoint("ours", folder / "ours"),
        train.EarlyStopping("eval_loss", patience=50), train.LearningRateScheduler(lambda rate, step: rate),
        train.ReduceLROnPlateau("eval_loss", patience=50), train.OnRequestExit(directory=folder),
        train.BackupAndRestore(folder / "our_backup"), train.LambdaCallback(on_train_end=lambda context: None),
    ]


@quick_every(9, 3)
@FEEDS
@pytest.mark.parametrize(
    ("cell", "level"), on_jax_only_some([(True, "O0"), (False, "O0"), (True, "O2"), (False, "O2")], [1, 2])
)
def test_all_of_them_stand_beside_all_of_ours_in_one_list(
    cell: bool, level: str, sink: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    class Look(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append(set(logs))
            assert self.model.optimizer.learning_rate is not None and self.model.metrics_names is not None
            assert self.model.count_params() == 4 and len(self.model.trainable_weights) == 2

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            assert all(type(value) is float for value in logs.values())
            seen.append(set(logs))

    callbacks, written = [*_all_of_keras(tmp_path, cell), *_all_of_ours(tmp_path), Look()], Written()
    if HAS_TENSORFLOW:
        callbacks.append(board := keras.callbacks.TensorBoard(tmp_path / "board", update_freq=1))
        monkeypatch.setattr(board.summary, "scalar", written.scalar)
    options: dict[str, Any] = {}
    if level == "O2":  # the first step is skipped: a keras file named after its loss is written all the same
        options = {"amp_level": "O2", "loss_scale_manager": DynamicLossScaleManager(2.0**26, 2.0**20, 100)}
    model = _model(_network(cell), **options)
    history = model.fit(12, BATCHES, VALID, callbacks=callbacks, dataset_sink_mode=sink, verbose=0)

    assert 2 < len(history["loss"]) < 12, "stopped early"
    scaled = {"loss_scale", "overflow", "skipped_steps"} if level == "O2" else set()
    epoch_keys = {"loss", "val_loss", "val_mae", *scaled}
    assert {frozenset(keys) for keys in seen} == {
        frozenset({"loss", *scaled}), frozenset({*epoch_keys, "learning_rate"})
    }
    names = {path.name.split("-")[0] for path in tmp_path.iterdir()}
    assert {"log.csv", "best.weights.h5", "epoch", "2", "end", "ours", "summary"} <= names
    assert not (tmp_path / "backup").exists() and ("whole.keras" in names) != cell
    assert history.get("skipped_steps", [0])[0] == (level == "O2")
    tags = {"batch_loss", "epoch_loss", "epoch_learning_rate", *(f"epoch_{name}" for name in scaled)}
    assert not HAS_TENSORFLOW or tags <= set(written.scalars)


@pytest.mark.slow
@pytest.mark.skipif(not HAS_TENSORFLOW, reason="Keras's TensorBoard needs TensorFlow")
@FEEDS
@KINDS
def test_tensorboard_has_loss_scale_overflow_and_skipped_steps(
    cell: bool, sink: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = DynamicLossScaleManager(init_loss_scale=2.0**127, scale_factor=2**20, scale_window=100)
    model = _model(_network(cell), own=cell, loss_scale_manager=manager)
    board = keras.callbacks.TensorBoard(
        tmp_path, histogram_freq=1, write_steps_per_second=True, write_graph=cell, update_freq=1
    )
    written = Written()
    monkeypatch.setattr(board.summary, "scalar", written.scalar)
    monkeypatch.setattr(board.summary, "histogram", written.histogram)
    history = model.fit(2, BATCHES, VALID, callbacks=board, dataset_sink_mode=sink, verbose=0)
    assert history["skipped_steps"] == [1, 0]
    assert written.scalars["epoch_loss_scale"] == dict(enumerate(history["loss_scale"]))
    assert written.scalars["epoch_overflow"] == written.scalars["epoch_skipped_steps"] == {0: 1.0, 1: 0.0}
    assert written.scalars["epoch_loss"] == dict(enumerate(history["val_loss"]))  # the same tag, in a second folder
    overflow = [1.0, 0.0] if sink else [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert written.scalars["batch_overflow"] == dict(enumerate(overflow, start=1))
    skipped = [1.0, 0.0] if sink else [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert written.scalars["batch_skipped_steps"] == dict(enumerate(skipped, start=1))
    assert len(written.scalars["batch_loss_scale"]) == len(overflow)
    assert written.scalars["evaluation_mae_vs_iterations"] == {2: history["val_mae"][0], 5: history["val_mae"][1]}
    assert len(written.histograms) == 2


def test_tensorboard_writes_files(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("tensorflow", reason="Keras's callback writes by TensorFlow")
    manager = DynamicLossScaleManager(init_loss_scale=16.0)
    model = _model(_network(True), loss_scale_manager=manager)
    model.fit(2, BATCHES, VALID, callbacks=keras.callbacks.TensorBoard(tmp_path), verbose=0)
    assert numbers(tmp_path / "train", "epoch_loss_scale") == {0: 16.0, 1: 16.0}
    assert numbers(tmp_path / "train", "epoch_overflow") == {0: 0.0, 1: 0.0}


@pytest.mark.filterwarnings("ignore:Model. in epoch 1, 2 of 2 steps were skipped")
def test_a_loss_is_in_the_logs_even_where_none_was_finite_yet() -> None:
    seen: list[float] = []
    read = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(logs["loss"]))
    infinite = (BATCHES[0][0] * np.float32(np.inf), BATCHES[0][1])
    _model(_network(True), loss_scale_manager=DynamicLossScaleManager(16.0)).train(1, [infinite] * 2, read, verbose=0)
    assert len(seen) == 2 and not np.isfinite(seen).any()


@pytest.mark.slow
@FEEDS
def test_terminate_on_nan_is_not_fooled_by_a_skipped_step(sink: bool) -> None:
    infinite = (BATCHES[0][0] * np.float32(np.inf), BATCHES[0][1])
    model = _model(_network(True), loss_scale_manager=DynamicLossScaleManager(16.0))
    with pytest.warns(UserWarning, match="their loss itself was not finite"):
        history = model.train(
            2, [BATCHES[0], infinite], keras.callbacks.TerminateOnNaN(), dataset_sink_mode=sink, verbose=0
        )
    assert history["skipped_steps"] == [1, 1]
    with pytest.warns(UserWarning, match="weights are not finite since step 2 of epoch 1"):
        stopped = _model(_network(True)).train(
            2, [BATCHES[0], infinite], keras.callbacks.TerminateOnNaN(), dataset_sink_mode=sink, verbose=0
        )
    assert len(stopped["loss"]) == 1
