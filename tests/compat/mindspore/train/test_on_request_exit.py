"""`OnRequestExit`: a signal, or a file, ends a run after its step; it goes on from what was written."""

from __future__ import annotations

import json
import pathlib
import signal
import threading
from typing import Any

import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model, load_checkpoint, nn
from mixtrain.train.callback import Callback, OnRequestExit
from mixtrain.train.run_context import RunContext

_draw = np.random.default_rng(5)
BATCHES = [
    (_draw.standard_normal((4, 2)).astype(np.float32), _draw.standard_normal((4, 1)).astype(np.float32))
    for _ in range(3)
]


class Ask(Callback):
    """Sends this process a signal, or writes a file, after a step."""

    def __init__(self, step: int, file: pathlib.Path | None = None) -> None:
        super().__init__()
        self.step, self.file, self.seen = step, file, 0

    def on_train_step_end(self, run_context: RunContext) -> None:
        self.seen = run_context.original_args().cur_step_num
        if self.seen == self.step and self.file is None:
            signal.raise_signal(signal.SIGTERM)
        elif self.seen == self.step:
            self.file.write_text(json.dumps({"GracefulExit": 1}))

    def on_eval_step_end(self, run_context: RunContext) -> None:
        self.on_train_step_end(run_context)


def _model() -> Model:
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    optimizer = nn.Momentum(net.trainable_params(), [0.1 * 0.9**step for step in range(20)], 0.5)
    manager = DynamicLossScaleManager(init_loss_scale=16.0, scale_window=4)
    return Model(net, nn.MSELoss(), optimizer, metrics={"mae"}, loss_scale_manager=manager)


@pytest.mark.slow
@pytest.mark.parametrize(("sink", "sink_size"), [(False, -1), (True, 3)], ids=["host", "sink"])
def test_a_run_asked_to_exit_at_the_end_of_an_epoch_goes_on_as_if_it_had_not_been(
    sink: bool, sink_size: int, tmp_path: pathlib.Path
) -> None:
    options: dict[str, Any] = {"dataset_sink_mode": sink, "sink_size": sink_size, "verbose": 0}
    whole = _model().train(4, BATCHES, **options)
    before = signal.getsignal(signal.SIGTERM)
    stopping = OnRequestExit(save_mindir=False, directory=str(tmp_path))
    part = _model().train(4, BATCHES, [Ask(6), stopping], **options)
    assert stopping.exit and part.epoch == [1, 2]
    assert signal.getsignal(signal.SIGTERM) is before, "the signal is given back"
    assert [file.name for file in (tmp_path / "rank_0").iterdir()] == ["Net_train.ckpt"]
    written = load_checkpoint(stopping.train_name + ".ckpt")
    assert {name: int(written[f"{name}_num"]) for name in ("epoch", "step", "batch")} == {
        "epoch": 2, "step": 6, "batch": 3
    }
    rest = _model().train(4, BATCHES, stopping, **options)
    assert not stopping.exit, "the same callback serves a second run"
    assert rest.epoch == [3, 4]
    assert dict(rest) == {name: values[2:] for name, values in whole.items()}


@pytest.mark.slow
def test_a_run_asked_within_an_epoch_ends_after_the_step_and_goes_on_with_the_next(tmp_path: pathlib.Path) -> None:
    asking, stopping = Ask(5), OnRequestExit(save_mindir=False, file_name="dense", directory=tmp_path)
    part = _model().fit(4, BATCHES, BATCHES, callbacks=[asking, stopping], verbose=0)
    assert asking.seen == 1, "the evaluation after it ended with its first batch"
    assert part.epoch == [1, 2]
    assert load_checkpoint(tmp_path / "rank_0" / "dense_train.ckpt").step == 5
    rest, whole = _model().train(4, BATCHES, stopping, verbose=0), _model().train(4, BATCHES, verbose=0)
    assert rest.epoch == [2, 3, 4]
    assert rest["loss"][1:] == whole["loss"][2:], "the epoch it broke off in has its last step alone"


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_file_may_ask_and_the_graph_is_written_for_tensorflow(tmp_path: pathlib.Path) -> None:
    tf = pytest.importorskip("tensorflow")
    file = tmp_path / "exit.json"
    file.write_text("{")  # half written asks for nothing
    stopping = OnRequestExit(False, directory=tmp_path, config_file=file)
    model = _model()
    assert model.train(3, BATCHES, [Ask(2, file), stopping], verbose=0).epoch == [1]
    assert [path.name for path in (tmp_path / "rank_0").iterdir()] == ["Net_train"]
    served = tf.saved_model.load(stopping.train_name).signatures["serving_default"]
    (result,) = served(tf.constant(BATCHES[0][0])).values()
    np.testing.assert_allclose(result, model.predict(BATCHES[0][0]), atol=1e-6)


def test_an_evaluation_ends_too_and_reads_what_training_left(tmp_path: pathlib.Path) -> None:
    trained = _model()
    trained.train(1, BATCHES, [Ask(3), OnRequestExit(save_mindir=False, directory=tmp_path)], verbose=0)
    whole = trained.eval(BATCHES)
    stopping = OnRequestExit(save_mindir=False, directory=tmp_path)
    assert _model().eval(BATCHES, stopping) == whole
    assert not stopping.exit
    asking = Ask(2)
    trained.eval(BATCHES, [asking, stopping])
    assert stopping.exit and asking.seen == 2
    assert sorted(file.name for file in (tmp_path / "rank_0").iterdir()) == ["Net_eval.ckpt", "Net_train.ckpt"]


def test_another_thread_takes_no_signals_and_says_so(tmp_path: pathlib.Path) -> None:
    errors: list[BaseException] = []

    def train() -> None:
        try:
            _model().train(1, BATCHES, OnRequestExit(directory=tmp_path), verbose=0)
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert "expected to run in the main thread" in str(errors[0])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"save_ckpt": 1}, TypeError, "save_ckpt must be True or False"),
        ({"save_mindir": "no"}, TypeError, "save_mindir must be True or False"),
        ({"file_name": 3}, TypeError, "file_name must be a str"),
        ({"file_name": "a/b"}, ValueError, "file_name must be a name without folders"),
        ({"directory": ""}, ValueError, "must not be empty"),
        ({"config_file": 3}, TypeError, "config_file must be a str"),
        ({"sig": "SIGTERM"}, TypeError, "sig must be an int"),
        ({"sig": signal.SIGKILL}, ValueError, "sig must be a signal that a process can handle"),
        ({"sig": 1000}, ValueError, "sig must be a signal that a process can handle"),
    ],
)
def test_wrong_arguments_are_refused(
    options: dict[str, Any], error: type[Exception], message: str, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(error, match=message):
        OnRequestExit(**{"directory": tmp_path, **options})


def test_a_signal_that_other_code_than_pythons_had_taken_is_left_as_the_system_has_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = []
    monkeypatch.setattr(signal, "signal", lambda number, handler: handlers.append(handler))  # Returns None.
    stopping = OnRequestExit(save_mindir=False, directory=str(tmp_path))
    with stopping:
        stopping._install_handler()
    assert handlers[-1] is signal.SIG_DFL
