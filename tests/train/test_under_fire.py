"""Runs that are killed, asked to end, or run out of disk go on from their newest whole file, as if never disturbed."""

from __future__ import annotations

import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

import mixtrain
from mixtrain import CheckpointConfig, ModelCheckpoint, load_latest_checkpoint
from mixtrain.train.steps_per_call import StepsPerCall
from tests.backends import ON_TENSORFLOW
from tests.train import fire_worker
from tests.train.fire_worker import EPOCHS, STATUS, made, run

# One batch overflows, as its data asks for.
pytestmark = pytest.mark.filterwarnings("ignore:Model. in epoch .* steps were skipped although")
# Of each kind of run; 5 and 3 were done by hand, `.ci/run` has time for these.
KILLS = int(os.environ.get("MIXTRAIN_KILLS", "1"))
SIGNALS = int(os.environ.get("MIXTRAIN_SIGNALS", "1"))
# Keras divides weights with JAX alone.
FEEDS = pytest.mark.parametrize("feed", [feed for feed in EPOCHS if not (ON_TENSORFLOW and feed.startswith("sharded"))])


class BreakOff(mixtrain.Callback):
    """Raises as a step ends."""

    observes_only = True

    def __init__(self, step: int) -> None:
        super().__init__()
        self._step = step

    def on_train_step_end(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num >= self._step:
            raise KeyboardInterrupt


# ---- in this process ----------------------------------------------------------------------------------------------
@pytest.mark.slow
@FEEDS
def test_a_run_that_breaks_off_within_an_epoch_goes_on_from_there(
    feed: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 1)
    whole = run(str(tmp_path / "whole"), feed, 5, pause=0.0)
    own = mixtrain.Model.train
    monkeypatch.setattr(
        mixtrain.Model, "train",
        lambda self, epochs, data, callbacks, **options: own(self, epochs, data, [*callbacks, BreakOff(17)], **options),
    )
    with pytest.raises(KeyboardInterrupt):
        run(str(tmp_path / "broken"), feed, 5, pause=0.0)
    monkeypatch.setattr(mixtrain.Model, "train", own)
    rest = run(str(tmp_path / "broken"), feed, 5, pause=0.0)
    assert rest["epochs"] == list(range(5 if feed.endswith("sink") else 2, EPOCHS[feed] + 1))
    assert rest["state"] == whole["state"]


@pytest.mark.slow
def test_a_damaged_newest_file_is_left_out_with_a_warning_and_leftovers_are_removed(tmp_path: pathlib.Path) -> None:
    run(str(tmp_path), "host", 5, pause=0.0)
    newest = max(tmp_path.glob("*.ckpt"), key=lambda file: file.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:-1])
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = [tmp_path / f".fire-1_5.ckpt.{pid}.0123abcd.tmp" for pid in (int(dead.stdout), os.getpid())]
    for file in left:
        file.write_bytes(b"half")
    with pytest.warns(UserWarning, match=f"load_latest_checkpoint: '.*{newest.name}' is left out: .*a damaged one"):
        state = load_latest_checkpoint(tmp_path, made().train_network)
    assert state is not None and (state.epoch, state.step, state.initial_epoch, state.initial_step) == (3, 35, 2, 11)
    assert [file.exists() for file in left] == [False, True], "a process that lives may still write"


def test_a_folder_without_a_runs_files_has_no_latest_one(tmp_path: pathlib.Path) -> None:
    mixtrain.save_checkpoint(made().predict_network, tmp_path / "weights.ckpt")
    assert load_latest_checkpoint(tmp_path) is None
    assert load_latest_checkpoint(tmp_path / "missing") is None


@pytest.mark.slow
def test_what_cannot_be_resumed_is_said_before_a_step_runs(tmp_path: pathlib.Path) -> None:
    run(str(tmp_path), "sink", 4, pause=0.0)
    model = made()
    data = fire_worker.GeneratorDataset(fire_worker.Rows(0.0), ["x", "y"]).batch(2)
    with pytest.raises(ValueError, match="to resume, an epoch must have 4 steps as in .*; got '24 steps'"):
        model.train(3, data, verbose=0, resume=tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="expected a folder; got the file"):
        model.train(3, data, verbose=0, resume=tmp_path / "file")
    with pytest.raises(TypeError, match="directory must be"):
        model.train(3, data, verbose=0, resume=3)


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_leaves_the_files_before(tmp_path: pathlib.Path) -> None:
    whole = run(str(tmp_path / "whole"), "host", 5, pause=0.0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    class Fill(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num == 13:
                resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))

    mixtrain.set_seed(3)
    data = fire_worker.GeneratorDataset(fire_worker.Rows(0.0), ["x", "y"], shuffle=True).batch(4)
    saver = ModelCheckpoint("fire", tmp_path / "full", CheckpointConfig(5, 3))
    try:
        with pytest.raises(OSError, match="File too large"):
            made().train(3, data, [saver, Fill()], verbose=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert sorted(os.listdir(tmp_path / "full")) == ["fire-1_10.ckpt", "fire-1_5.ckpt"]
    assert run(str(tmp_path / "full"), "host", 5, pause=0.0)["state"] == whole["state"]


@pytest.mark.slow
def test_a_folder_that_vanishes_is_named(tmp_path: pathlib.Path) -> None:
    class Remove(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num == 6:
                shutil.rmtree(tmp_path / "gone")

    data = fire_worker.GeneratorDataset(fire_worker.Rows(0.0), ["x", "y"]).batch(4)
    saver = ModelCheckpoint("fire", tmp_path / "gone", CheckpointConfig(5, 3))
    with pytest.raises(FileNotFoundError, match="save_checkpoint: expected a folder that exists; got '.*gone'. Write"):
        made().train(3, data, [saver, Remove()], verbose=0)


# ---- processes --------------------------------------------------------------------------------------------------
def started(folder: pathlib.Path, feed: str, every: int, *signals: int) -> subprocess.Popen[str]:
    """Start a run in a process of its own; return once it trains."""
    command = [sys.executable, "-m", "tests.train.fire_worker", str(folder), feed, str(every), *map(str, signals)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begin\n"
    return process


def left_by(process: subprocess.Popen[str]) -> dict[str, Any] | None:
    """Wait for a process; return what it told at its end, None where it did not come to that."""
    output = process.communicate()[0]
    return None if not output else json.loads(output)  # type: ignore[no-any-return]


def undisturbed(folder: pathlib.Path, feed: str, every: int) -> Any:
    process = started(folder, feed, every)
    result = left_by(process)
    assert result is not None and process.returncode == STATUS
    return result["state"]


@pytest.mark.slow
@FEEDS
@pytest.mark.parametrize("every", [1, 2])
def test_runs_killed_at_random_moments_lose_nothing(feed: str, every: int, tmp_path: pathlib.Path) -> None:
    whole = undisturbed(tmp_path / "whole", feed, every)
    draw, kills, result, folders = random.Random(f"{feed}{every}"), 0, None, 0
    while kills < KILLS or result is None:
        folder = tmp_path / f"killed{folders}"
        process = started(folder, feed, every)
        if kills < KILLS:
            time.sleep(draw.uniform(0.0, 0.5))
            process.kill()
        result = left_by(process)
        kills += process.returncode == -signal.SIGKILL
        if result is not None:
            assert result["state"] == whole
            folders += 1
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]
    print(f"{feed}, a file each {every} steps: {kills} kills")


@pytest.mark.slow
@pytest.mark.parametrize("feed", ["host", "sink"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_runs_that_signals_ask_to_end_save_end_with_their_own_status_and_lose_nothing(
    feed: str, number: int, tmp_path: pathlib.Path
) -> None:
    whole = undisturbed(tmp_path / "whole", feed, 1000)
    draw, signals, result, folders = random.Random(f"{feed}{number}"), 0, None, 0
    while signals < SIGNALS or result is None or result["stopped"]:
        process = started(tmp_path / f"asked{folders}", feed, 1000, number)
        if signals < SIGNALS:
            time.sleep(draw.uniform(0.0, 0.4))
            process.send_signal(number)
        result = left_by(process)
        if result is None:  # The signal came after training, when it was not this callback's any more.
            result = {"stopped": True}
            continue
        assert process.returncode == STATUS
        signals += result["stopped"]
        if not result["stopped"]:
            assert result["state"] == whole
            folders += 1
    print(f"{feed}: {signals} signals {number}")


@pytest.mark.slow
def test_two_processes_that_write_under_one_prefix_leave_whole_files(tmp_path: pathlib.Path) -> None:
    whole = undisturbed(tmp_path / "whole", "host", 2)
    folder = tmp_path / "both"
    both = [started(folder, "host", 2), started(folder, "host", 2)]
    assert [item is not None for item in map(left_by, both)] == [True, True]
    result = load_latest_checkpoint(folder)
    assert result is not None and (result.epoch, result.step) == (3, 36)
    assert run(str(folder), "host", 2, pause=0.0)["state"] == whole
