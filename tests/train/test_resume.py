"""A run is resumed from the file that is furthest on; what does not fit is refused before anything changes."""

from __future__ import annotations

import os
import pathlib
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, ModelCheckpoint, nn
from mixtrain.seed import seed_state
from mixtrain.train.callback import BackupAndRestore, Callback, CheckpointConfig, OnRequestExit
from tests.serialization.runs import everything

_draw = np.random.default_rng(5)
BATCHES = [
    (_draw.standard_normal((4, 2)).astype(np.float32), _draw.standard_normal((4, 1)).astype(np.float32))
    for _ in range(5)
]


class Unsized:
    """The same batches, of a class that does not tell how many there are."""

    def __iter__(self) -> Iterator[Any]:
        return iter(BATCHES[:3])


class Stop(Callback):
    """Ends the run after a step: as if it were killed, or by the signal that asks it to."""

    def __init__(self, step: int, *, by_request: bool = False) -> None:
        super().__init__()
        self._step, self._by_request = step, by_request

    def on_train_step_end(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == self._step:
            if not self._by_request:
                raise KeyboardInterrupt
            signal.raise_signal(signal.SIGTERM)


def model() -> Model:
    mixtrain.set_seed(3)
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    optimizer = nn.Adam(net.trainable_params(), 0.1)
    return Model(net, nn.MSELoss(), optimizer, loss_scale_manager=DynamicLossScaleManager(16.0, 2, 4))


def saver(folder: pathlib.Path, steps: int) -> ModelCheckpoint:
    return ModelCheckpoint("net", str(folder), CheckpointConfig(steps, keep_checkpoint_max=99))


def state(of: Model) -> dict[str, Any]:
    return {name: np.copy(value) for name, value in everything(of).items()} | {"seed": str(seed_state())}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert list(one) == list(other)
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], value, err_msg=name)


# ---- which file ---------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_file_furthest_on_is_taken_whatever_the_clock_said(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model().train(2, BATCHES[:3], [saver(tmp_path, 3)], verbose=0)
    os.utime(tmp_path / "net-1_3.ckpt", (time.time() + 3600,) * 2)
    with pytest.warns(UserWarning, match=r"net-2_3.ckpt' is taken, .*after epoch 2.*net-1_3.ckpt' .*after epoch 1"):
        history = model().train(4, BATCHES[:3], resume=tmp_path)
    assert history.epoch == [3, 4]
    assert capsys.readouterr().out.startswith("Model.train: goes on from net-2_3.ckpt, after epoch 2\n")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:load_latest_checkpoint")
def test_a_folder_copied_without_its_times_trains_no_epoch_again(tmp_path: pathlib.Path) -> None:
    whole, trained = model(), []
    whole.train(5, BATCHES[:3], verbose=0)
    for epochs in (2, 4, 4, 5):
        last = model()
        trained.append(last.train(epochs, BATCHES[:3], [saver(tmp_path, 2)], verbose=0, resume=tmp_path).epoch)
        for age, file in enumerate(sorted(tmp_path.iterdir(), key=lambda file: file.stat().st_mtime_ns)):
            os.utime(file, (2e9 - age,) * 2)  # The oldest file gets the latest time.
    assert trained == [[1, 2], [3, 4], [], [5]]
    assert_same(state(whole), state(last))


def test_a_run_that_ended_leaves_no_file_from_which_the_next_one_starts(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(stop: int) -> list[int]:
        callbacks = [OnRequestExit(save_mindir=False, directory=str(tmp_path)), Stop(stop, by_request=True)]
        return model().train(4, BATCHES[:3], callbacks, verbose=0).epoch  # type: ignore[no-any-return]

    assert [run(6), run(99), run(99)] == [[1, 2], [3, 4], [1, 2, 3, 4]]
    assert capsys.readouterr().out == "OnRequestExit: goes on from Net_train.ckpt, after epoch 2\n"


# ---- what is refused ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["resume", pytest.param("on_request_exit", marks=pytest.mark.slow)])
def test_data_of_another_length_is_refused_before_anything_changes(kind: str, tmp_path: pathlib.Path) -> None:
    callback = OnRequestExit(save_mindir=False, directory=str(tmp_path))
    writing = [saver(tmp_path, 2)] if kind == "resume" else [callback, Stop(4, by_request=True)]
    model().train(2, BATCHES[:3], writing, verbose=0)
    other = model()
    before = state(other)
    options: dict[str, Any] = {"resume": tmp_path} if kind == "resume" else {"callbacks": [callback]}
    with pytest.raises(ValueError, match="an epoch must have 3 steps as in .*; got '5 steps"):
        other.train(4, BATCHES, verbose=0, **options)
    assert_same(before, state(other))


# ---- data of unknown size -----------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("stop", [2, 3, 5])
def test_data_of_unknown_size_goes_on_as_if_it_had_not_stopped(stop: int, tmp_path: pathlib.Path) -> None:
    whole, resumed = model(), model()
    history = whole.train(3, Unsized(), verbose=0)
    with pytest.raises(KeyboardInterrupt):
        model().train(3, Unsized(), [saver(tmp_path, 1), Stop(stop)], verbose=0)
    rest = resumed.train(3, Unsized(), verbose=0, resume=tmp_path)
    assert_same(state(whole), state(resumed))
    assert rest["loss"][-1] == history["loss"][-1]


@pytest.mark.slow
def test_a_file_of_the_end_of_an_epoch_of_unknown_size_tells_the_next_epoch(tmp_path: pathlib.Path) -> None:
    callback = BackupAndRestore(str(tmp_path), delete_checkpoint=False)
    model().train(2, Unsized(), callback, verbose=0)
    assert mixtrain.load_checkpoint(callback.backup_file).position == (2, 0)
