"""ModelCheckpoint: the files it writes, as MindSpore 2.10 names and keeps them, and what it refuses."""

from __future__ import annotations

import os
import pathlib
import time
from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
from mixtrain.serialization import load_checkpoint
from mixtrain.train.callback import Callback, CheckpointConfig, ModelCheckpoint


def model() -> mixtrain.Model:
    net = nn.Dense(2, 1)
    return mixtrain.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9))


BATCHES = [(np.ones((2, 2), np.float32), np.ones((2, 1), np.float32))] * 4


def files(folder: pathlib.Path, config: Any = None, prefix: Any = "p", callbacks: Any = (), **train: Any) -> list[str]:
    """Train for two epochs of four steps; return the files."""
    saver = ModelCheckpoint(prefix, str(folder), config)
    model().train(2, BATCHES, callbacks=[saver, *callbacks], verbose=0, **train)
    return sorted(os.listdir(folder))


# (config, files that MindSpore 2.10 leaves after two epochs of four steps)
KEPT = {
    "default": (None, ["p-1_4", "p-2_1", "p-2_2", "p-2_3", "p-2_4"]),
    "three": (CheckpointConfig(1, keep_checkpoint_max=3), ["p-2_2", "p-2_3", "p-2_4"]),
    "every third step": (CheckpointConfig(3), ["p-1_3", "p-2_2", "p-2_4"]),
    "no maximum": (CheckpointConfig(3, keep_checkpoint_max=0), ["p-2_4"]),
    "seconds": (CheckpointConfig(0, 100), ["p-2_4"]),
    "more steps than there are": (CheckpointConfig(100), ["p-2_4"]),
    "neither steps nor seconds": (CheckpointConfig(0, 0, 5), []),
    "older spellings": (CheckpointConfig(save_ckpt_steps=4, keep_ckpt_max=1), ["p-2_4"]),
}


@pytest.mark.slow
@pytest.mark.parametrize(("config", "expected"), KEPT.values(), ids=KEPT.keys())
def test_files_are_written_and_kept_as_configured(tmp_path: pathlib.Path, config: Any, expected: list[str]) -> None:
    assert files(tmp_path, config) == [f"{name}.ckpt" for name in expected]


@pytest.mark.slow
def test_sink_feed_writes_after_a_call_and_a_resumed_run_counts_its_own_steps(tmp_path: pathlib.Path) -> None:
    assert files(tmp_path / "sink", CheckpointConfig(3), dataset_sink_mode=True) == ["p-1_4.ckpt", "p-2_4.ckpt"]
    assert files(tmp_path / "resumed", CheckpointConfig(2), initial_epoch=1) == ["p-2_2.ckpt", "p-2_4.ckpt"]


@pytest.mark.slow
def test_the_file_has_the_train_network_the_place_and_what_was_appended(tmp_path: pathlib.Path) -> None:
    config = CheckpointConfig(3, append_info=["epoch_num", "step_num", {"x": 1.5, "s": "q"}])
    saver = ModelCheckpoint("p", str(tmp_path), config)
    assert saver.latest_ckpt_file_name == ""
    model().train(2, BATCHES, callbacks=saver, verbose=0)
    assert saver.latest_ckpt_file_name == str(tmp_path / "p-2_4.ckpt")
    loaded = load_checkpoint(str(tmp_path / "p-2_2.ckpt"))
    assert {"weight", "global_step", "learning_rate", "moments.weight"} < set(loaded)
    assert (int(loaded["epoch_num"]), int(loaded["step_num"]), float(loaded["x"]), loaded["s"]) == (2, 6, 1.5, "q")
    assert (loaded.epoch, loaded.step, loaded.initial_epoch) == (2, 6, 1)
    assert loaded["global_step"].asnumpy().tolist() == [6]


def test_another_network_can_be_written(tmp_path: pathlib.Path) -> None:
    saver = ModelCheckpoint("p", str(tmp_path), CheckpointConfig(8, saved_network=nn.Dense(5, 5), async_save=True))
    model().train(2, BATCHES, callbacks=saver, verbose=0)
    assert tuple(load_checkpoint(saver.latest_ckpt_file_name)["weight"].shape) == (5, 5)


def test_functions_may_name_the_files_and_the_folder(tmp_path: pathlib.Path) -> None:
    saver = ModelCheckpoint(
        lambda arguments: f"q{arguments.cur_step_num}", lambda arguments: str(tmp_path / str(arguments.cur_epoch_num)),
        CheckpointConfig(3),
    )
    model().train(2, BATCHES, callbacks=saver, verbose=0)
    result = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.ckpt"))
    assert result == ["1/q3.ckpt", "2/q6.ckpt", "2/q8.ckpt"]


@pytest.mark.slow
def test_a_prefix_that_files_have_is_numbered(tmp_path: pathlib.Path) -> None:
    for name in ("a-1_2.ckpt", "a_1-1_2.ckpt", "a_7-1_2.ckpt", "ab-1_1.ckpt"):
        (tmp_path / name).touch()
    names = [name for name in files(tmp_path, CheckpointConfig(8), "a") if (tmp_path / name).stat().st_size]
    assert names == ["a_8-2_4.ckpt"]
    assert "ab_1-2_4.ckpt" in files(tmp_path, CheckpointConfig(8), "ab")
    assert "c-2_4.ckpt" in files(tmp_path, CheckpointConfig(8), "c")


class Stop(Callback):
    def on_train_step_end(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == 6:
            raise RuntimeError("stop")


def test_an_exception_leaves_a_file_where_that_is_wanted(tmp_path: pathlib.Path) -> None:
    for folder, expected in ((tmp_path / "with", True), (tmp_path / "without", False)):
        with pytest.raises(RuntimeError, match="stop"):
            files(folder, CheckpointConfig(100, exception_save=expected), callbacks=[Stop()])
    assert os.listdir(tmp_path / "with") == ["p-2_2_breakpoint.ckpt"]
    assert os.listdir(tmp_path / "without") == []
    assert load_checkpoint(str(tmp_path / "with" / "p-2_2_breakpoint.ckpt")).step == 6


class Clock(Callback):
    """Lets time pass in every step, and sets the wall clock back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        super().__init__()
        self.now, self.seconds = 1000.0, seconds
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "time", lambda: -self.now)

    def on_train_step_begin(self, run_context: Any) -> None:
        self.now += self.seconds


def test_seconds_between_files_are_kept(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 10.0)
    assert files(tmp_path, CheckpointConfig(0, 25), callbacks=[clock]) == ["p-1_3.ckpt", "p-2_2.ckpt", "p-2_4.ckpt"]


def test_one_file_is_kept_for_every_so_many_minutes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = CheckpointConfig(1, keep_checkpoint_max=0, keep_checkpoint_per_n_minutes=1)
    result = files(tmp_path, config, callbacks=[Clock(monkeypatch, 20.0)])
    # Of the files of the last 60 seconds the oldest stays whenever another is written, as in MindSpore.
    assert result == ["p-1_1.ckpt", "p-1_3.ckpt", "p-2_1.ckpt", "p-2_3.ckpt", "p-2_4.ckpt"]


def test_it_only_observes(tmp_path: pathlib.Path) -> None:
    assert ModelCheckpoint("p", str(tmp_path)).observes_only


def test_the_policy_of_a_config_is_mindspores() -> None:
    def policy(*numbers: int) -> list[Any]:
        return list(CheckpointConfig(*numbers).get_checkpoint_policy().values())

    assert policy(0, 10, 0, 5) == [0, 10, 0, 5, None]
    assert policy(5, 10, 3, 5) == [5, None, 3, None, None]
    assert policy(0, 0, 0, 5) == [0, 0, 0, 5, None]
    assert policy(1, 0, 0, 0) == [1, None, 1, 0, None]


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"save_checkpoint_steps": -1}, ValueError, "save_checkpoint_steps must be at least 0"),
        ({"keep_checkpoint_max": 1.5}, TypeError, "keep_checkpoint_max must be an int"),
        ({"save_checkpoint_seconds": True}, TypeError, "save_checkpoint_seconds must be an int"),
        ({"save_checkpoint_steps": 0, "keep_checkpoint_max": None}, ValueError, "more than 0"),
        ({"async_save": "x"}, ValueError, "thread, process"),
        ({"integrated_save": 1}, TypeError, "integrated_save"),
        ({"saved_network": 3}, TypeError, "saved_network must be a Cell or"),
        ({"append_info": "epoch_num"}, TypeError, "append_info must be a list"),
        ({"append_info": ["foo"]}, ValueError, "epoch_num, step_num"),
        ({"append_info": [3]}, TypeError, "each item of append_info"),
        ({"append_info": [{"a": 1}, {"b": 2}]}, TypeError, "at most one dict"),
        ({"append_info": [{"a": [1]}]}, TypeError, "append_dict"),
        ({"exception_save": 1}, TypeError, "exception_save"),
        ({"enc_key": b"0" * 16}, ValueError, "not encrypted"),
        ({"remove_redundancy": True}, ValueError, "one device"),
        ({"foo": 3}, TypeError, "foo"),
    ],
)
def test_a_wrong_config_is_refused(arguments: dict[str, Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        CheckpointConfig(**arguments)


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"prefix": 3}, ValueError, "prefix must be a str without /"),
        ({"prefix": "a/b"}, ValueError, "prefix must be a str without /"),
        ({"directory": 3}, TypeError, "directory must be a str"),
        ({"directory": ""}, ValueError, "must not be empty"),
        ({"directory": "file"}, NotADirectoryError, "got the file"),
        ({"directory": "file/below"}, NotADirectoryError, "file"),
        ({"config": 3}, TypeError, "config must be a CheckpointConfig"),
    ],
)
def test_wrong_arguments_are_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, arguments: Any, kind: type[Exception], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    pathlib.Path("file").touch()
    with pytest.raises(kind, match=says):
        ModelCheckpoint(**arguments)
    assert os.listdir() == ["file"]


def test_a_folder_that_cannot_be_written_is_refused_before_training(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match="a folder to write in"):
        ModelCheckpoint("p", str(tmp_path))
