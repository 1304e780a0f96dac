"""Keras callbacks in a mixtrain run: hooks, logs, the model they see, and Keras's own ones at work."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.cell.cell import Cell
from mixtrain.optim import SGD
from mixtrain.train.callback import CallbackList
from mixtrain.train.run_context import CallbackArguments, RunContext
from tests.optim.setting import parameter
from tests.train.callback.run import tell_run


class Net(Cell):
    def __init__(self) -> None:
        super().__init__()
        self.weight = parameter("", 1.0, 2.0)

    def construct(self, x: Any) -> Any:
        return x * self.weight


def dense_model() -> keras.Model:
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])


class Recorder(keras.callbacks.Callback):
    """Notes every call that training makes."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[Any] = []

    def on_train_begin(self, logs: Any = None) -> None:
        self.said.append(("train_begin", logs))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.said.append(("epoch_begin", epoch, logs))

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.said.append(("batch_begin", batch, logs))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.said.append(("batch_end", batch, logs))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.said.append(("epoch_end", epoch, logs))

    def on_train_end(self, logs: Any = None) -> None:
        self.said.append(("train_end", logs))

    def on_test_begin(self, logs: Any = None) -> None:
        self.said.append(("test_begin", logs))

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self.said.append(("test_batch_end", batch, logs))

    def on_test_end(self, logs: Any = None) -> None:
        self.said.append(("test_end", logs))


def test_hooks_epochs_batches_and_logs_are_keras() -> None:
    recorder = Recorder()
    tell_run(recorder, [[1.0, 2.0], [3.0, 4.0]], metrics=[{"accuracy": np.float64(0.25)}, {"accuracy": 0.5}])
    evaluation = [("test_begin", {}), ("test_batch_end", 0, {}), ("test_end", {"accuracy": 0.5, "loss": 0.5})]
    assert recorder.said == [
        ("train_begin", {}),
        ("epoch_begin", 0, {}),
        ("batch_begin", 0, {}),
        ("batch_end", 0, {"loss": 1.0}),
        ("batch_begin", 1, {}),
        ("batch_end", 1, {"loss": 1.5}),
        *evaluation,
        ("epoch_end", 0, {"loss": 1.5, "val_accuracy": 0.25}),
        ("epoch_begin", 1, {}),
        ("batch_begin", 0, {}),
        ("batch_end", 0, {"loss": 3.0}),
        ("batch_begin", 1, {}),
        ("batch_end", 1, {"loss": 3.5}),
        # What the first evaluation found: this test moves the state of a run by hand.
        *(call if call[0] != "test_batch_end" else (*call[:2], {"accuracy": 0.25}) for call in evaluation),
        ("epoch_end", 1, {"loss": 3.5, "val_accuracy": 0.5}),
        ("train_end", {"loss": 3.5, "val_accuracy": 0.5}),
    ]
    assert recorder.params == {"verbose": 0, "epochs": 2, "steps": 2}
    assert type(recorder.said[9][2]["val_accuracy"]) is float


def test_sink_feed_tells_of_a_call_with_the_mean_loss_up_to_its_end() -> None:
    recorder = Recorder()
    tell_run(recorder, [[1.0, 2.0, 3.0, 4.0]], call=2)
    assert [said for said in recorder.said if said[0] == "batch_end"] == [
        ("batch_end", 1, {"loss": 1.5}), ("batch_end", 3, {"loss": 2.5}),
    ]


def test_a_skipped_step_shows_the_mean_loss_before_it() -> None:
    recorder = Recorder()
    tell_run(
        recorder, [[1.0, float("inf"), 3.0]], overflow=[[False, True, False]], scales=[[2.0, 2.0, 1.0]]
    )
    assert [said[2]["loss"] for said in recorder.said if said[0] == "batch_end"] == [1.0, 1.0, 2.0]


def test_a_loss_that_is_no_number_stops_with_terminate_on_nan() -> None:
    context = tell_run(keras.callbacks.TerminateOnNaN(), [[1.0, float("nan"), 1.0]])
    assert context.get_stop_requested()
    assert context.original_args().cur_step_num == 2


def test_skipped_steps_do_not_stop_with_terminate_on_nan() -> None:
    context = tell_run(
        keras.callbacks.TerminateOnNaN(), [[1.0, float("nan")]], overflow=[[False, True]], scales=[[2.0, 2.0]]
    )
    assert not context.get_stop_requested()


def test_the_older_batch_names_are_heard() -> None:
    said: list[Any] = []

    class Older(keras.callbacks.Callback):
        def on_batch_end(self, batch: int, logs: Any = None) -> None:
            said.append((batch, logs))

    tell_run(Older(), [[1.0, 2.0]])
    assert said == [(0, {"loss": 1.0}), (1, {"loss": 1.5})]


def test_functions_given_to_a_lambda_callback_are_heard() -> None:
    said: list[int] = []
    tell_run(keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: said.append(epoch)), [[1.0], [1.0]])
    assert said == [0, 1]


def test_history_has_the_epochs_values() -> None:
    history = keras.callbacks.History()
    tell_run(history, [[1.0, 2.0], [3.0, 4.0]], metrics=[{"accuracy": 0.25}, {"accuracy": 0.5}])
    assert history.epoch == [0, 1]
    assert history.history == {"loss": [1.5, 3.5], "val_accuracy": [0.25, 0.5]}


@pytest.mark.parametrize("cell", [True, False])
def test_stop_training_stops_the_run_and_is_forgotten_by_the_next(cell: bool) -> None:
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.stop_training = epoch == 1

    network, callback = Net() if cell else dense_model(), Stop()
    for _ in range(2):
        context = tell_run(callback, [[1.0]] * 4, network=network)
        assert context.original_args().cur_epoch_num == 2


# ---- the model they see -----------------------------------------------------------------------------------------
def test_a_keras_model_is_seen_itself_with_the_optimizer_for_the_run() -> None:
    model, optimizer = dense_model(), keras.optimizers.SGD(0.5)
    seen: list[Any] = []

    class Look(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            seen.append((self.model is model, self.model.optimizer is optimizer))

    tell_run([Look(), Look()], [[1.0]], network=model, optimizer=optimizer)
    assert seen == [(True, True)] * 2
    assert not hasattr(model, "optimizer")


def test_a_compiled_model_gets_its_own_optimizer_back_even_after_an_error() -> None:
    model = dense_model()
    model.compile("adam", "mse")
    own = model.optimizer

    class Fail(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            assert self.model.optimizer is not own
            raise KeyError

    with pytest.raises(KeyError):
        tell_run(Fail(), [[1.0]], network=model, optimizer=keras.optimizers.SGD(0.5))
    assert model.optimizer is own


@pytest.mark.parametrize("kind", ["keras", "mixtrain"])
@pytest.mark.parametrize("cell", [True, False])
def test_callbacks_move_the_rate_of_either_optimizer(kind: str, cell: bool) -> None:
    network: Any = Net() if cell else dense_model()
    weights = list(network.get_parameters()) if cell else network.trainable_variables
    optimizer: Any = SGD(weights, 0.5) if kind == "mixtrain" else keras.optimizers.SGD(0.5)
    callbacks = [
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2),
        keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=0.0),
    ]
    tell_run(callbacks, [[1.0], [1.0]], network=network, optimizer=optimizer)
    assert float(keras.ops.convert_to_numpy(optimizer.learning_rate)) == 0.0625


@pytest.mark.parametrize("cell", [True, False])
def test_early_stopping_puts_back_the_best_weights(cell: bool) -> None:
    network: Any = Net() if cell else dense_model()
    variable = network.weight if cell else network.trainable_variables[0]

    class Move(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            variable.assign(np.full(variable.shape, float(epoch)))

    stopping = keras.callbacks.EarlyStopping("val_accuracy", patience=2, restore_best_weights=True)
    values = [{"accuracy": value} for value in (0.25, 0.75, 0.5, 0.5, 0.5)]
    context = tell_run([Move(), stopping], [[1.0]] * 5, metrics=values, network=network)
    assert context.original_args().cur_epoch_num == 4
    assert stopping.stopped_epoch == 3
    np.testing.assert_array_equal(backend.to_numpy(variable), np.ones(variable.shape))


def test_a_watched_loss_is_better_when_lower() -> None:
    stopping = keras.callbacks.EarlyStopping("val_my_loss", patience=1)
    context = tell_run(stopping, [[1.0]] * 3, metrics=[{"my_loss": value} for value in (3.0, 2.0, 1.0)])
    assert not context.get_stop_requested()


def test_a_keras_model_is_saved_by_keras(tmp_path: pathlib.Path) -> None:
    model = dense_model()
    path = tmp_path / "best.weights.h5"
    callback = keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
    tell_run(callback, [[1.0]], network=model, optimizer=keras.optimizers.SGD(0.5))
    other = dense_model()
    other.load_weights(path)
    np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])


def test_a_cell_is_not_saved_whole_in_keras_format(tmp_path: pathlib.Path) -> None:
    callback = keras.callbacks.ModelCheckpoint(tmp_path / "best.keras")
    with pytest.raises(TypeError, match="only a keras.Model is saved in Keras's format.*save_weights_only=True"):
        tell_run(callback, [[1.0]], network=Net())


def test_the_weights_of_a_cell_are_saved_and_loaded(tmp_path: pathlib.Path) -> None:
    network, path = Net(), tmp_path / "best.weights.h5"
    tell_run(keras.callbacks.ModelCheckpoint(path, save_weights_only=True), [[1.0]], network=network)
    network.weight.set_data(np.zeros(2, np.float32))

    class Load(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            self.model.load_weights(path)
            with pytest.raises(FileExistsError, match="overwrite=True"):
                self.model.save_weights(path, overwrite=False)

    tell_run(Load(), [[1.0]], network=network)
    assert network.weight.asnumpy().tolist() == [1.0, 2.0]
    assert [file.name for file in tmp_path.iterdir()] == ["best.weights.h5"]


def test_with_loss_scaling_the_logs_hold_scale_overflow_and_skipped_steps() -> None:
    recorder = Recorder()
    tell_run(
        recorder, [[1.0, 2.0], [3.0, 4.0]], overflow=[[False, True], [True, False]], scales=[[8.0, 8.0], [4.0, 2.0]]
    )
    assert [said[2] for said in recorder.said if said[0] == "batch_end"] == [
        {"loss": 1.0, "loss_scale": 8.0, "overflow": 0.0, "skipped_steps": 0.0},
        {"loss": 1.0, "loss_scale": 8.0, "overflow": 1.0, "skipped_steps": 1.0},
        {"loss": 1.0, "loss_scale": 4.0, "overflow": 1.0, "skipped_steps": 1.0},
        {"loss": 4.0, "loss_scale": 2.0, "overflow": 0.0, "skipped_steps": 1.0},
    ]


def test_what_one_callback_adds_to_the_logs_of_an_epoch_the_next_ones_read() -> None:
    rates: list[float] = []
    callbacks = [
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2),
        keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: rates.append(logs["learning_rate"])),
    ]
    tell_run(callbacks, [[1.0], [1.0]], network=dense_model(), optimizer=keras.optimizers.SGD(0.5))
    assert rates == [0.25, 0.125]


def test_an_evaluation_of_a_model_that_is_not_compiled_has_no_optimizer(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("tensorflow", reason="Keras's TensorBoard needs TensorFlow")
    model = dense_model()
    arguments = CallbackArguments(mode="eval", network=model)
    with CallbackList(keras.callbacks.TensorBoard(tmp_path), arguments) as listed:
        assert model.optimizer is None
        arguments._set(metrics={"accuracy": 0.5}, eval_results={"accuracy": 0.5, "eval_loss": 0.5})
        listed.on_eval_end(RunContext(arguments))
    assert not hasattr(model, "optimizer")


def test_a_cell_is_called_and_its_weights_are_read_and_set() -> None:
    network = Net()
    seen: list[Any] = []

    class Use(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            seen.append(backend.to_numpy(self.model(np.array([2.0, 2.0], np.float32))).tolist())
            self.model.set_weights([2 * value for value in self.model.get_weights()])

    tell_run(Use(), [[1.0]], network=network)
    assert seen == [[2.0, 4.0]]
    assert network.weight.asnumpy().tolist() == [2.0, 4.0]


class Judging(keras.callbacks.EarlyStopping):
    """Counts the epochs that it is told of."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.epochs = [*getattr(self, "epochs", []), epoch]
        super().on_epoch_end(epoch, logs)


def test_who_looks_for_an_improvement_is_not_told_of_epochs_that_changed_nothing() -> None:
    judging, recorder = Judging("loss", patience=2), Recorder()
    overflow = [[True, True], [True, True], [True, False], [True, True], [False, False]]
    tell_run([judging, recorder], [[4.0, 4.0]] * 5, overflow=overflow, scales=[[8.0, 8.0]] * 5, call=2)
    assert judging.epochs == [2, 4] and judging.wait == 1 and judging.stopped_epoch == 0
    assert [said[1] for said in recorder.said if said[0] == "epoch_end"] == list(range(5))
