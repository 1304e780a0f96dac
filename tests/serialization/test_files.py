"""Files: what is not a regular file is never read, and a file is opened once."""

from __future__ import annotations

import os
import pathlib
import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mixtrain import load_latest_checkpoint
from mixtrain.errors import CheckpointError
from mixtrain.serialization import load_checkpoint, save_checkpoint, store


def as_loop(path: pathlib.Path) -> None:
    path.with_name("other.ckpt").symlink_to(path)
    path.symlink_to(path.with_name("other.ckpt"))


def as_socket(path: pathlib.Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(path))


SPECIAL: dict[str, tuple[Callable[[pathlib.Path], object], str]] = {
    "directory": (lambda path: path.mkdir(), "a directory"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "a character device"),
    "pipe": (lambda path: os.mkfifo(path), "a pipe"),
    "socket": (as_socket, "a socket"),
    "loop": (as_loop, "a symbolic link that leads to itself"),
    "link to a directory": (lambda path: path.symlink_to(path.parent), "a directory"),
    "empty": (lambda path: path.touch(), "an empty file"),
}


@pytest.mark.parametrize(("make", "says"), SPECIAL.values(), ids=SPECIAL.keys())
def test_what_is_not_a_regular_file_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[pathlib.Path], object], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "special.ckpt"
    make(path)
    with pytest.raises(CheckpointError, match=f"special.ckpt', {says}"):
        load_checkpoint(str(path))


@pytest.mark.parametrize("name", ["gone.ckpt", "a.ckpt/b.ckpt", "x" * 300 + ".ckpt", "null\0.ckpt", "dangling.ckpt"])
def test_a_file_that_is_missing_is_said_to_be(tmp_path: pathlib.Path, name: str) -> None:
    save_checkpoint({"x": np.ones(2)}, tmp_path / "a.ckpt")
    (tmp_path / "dangling.ckpt").symlink_to(tmp_path / "nowhere.ckpt")
    with pytest.raises(ValueError, match="must be a file that exists"):
        load_checkpoint(os.path.join(tmp_path, name))


def test_a_symbolic_link_to_a_checkpoint_is_read_and_written_through(tmp_path: pathlib.Path) -> None:
    save_checkpoint({"x": np.ones(2)}, tmp_path / "run-3_4.ckpt")
    (tmp_path / "latest.ckpt").symlink_to("run-3_4.ckpt")
    assert list(load_checkpoint(tmp_path / "latest.ckpt")) == ["x"]
    save_checkpoint({"y": np.ones(2)}, tmp_path / "latest.ckpt")
    assert (tmp_path / "latest.ckpt").is_symlink()
    assert list(load_checkpoint(tmp_path / "run-3_4.ckpt")) == ["y"]


def test_reading_a_file_opens_no_descriptor_that_stays(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.ckpt"
    save_checkpoint({"x": np.ones(2)}, path)
    load_checkpoint(path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        load_checkpoint(path)
        path.with_name("empty.ckpt").touch()
        with pytest.raises(CheckpointError):
            load_checkpoint(path.with_name("empty.ckpt"))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_another_program_writes_into_while_it_is_read_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, compare = tmp_path / "a.ckpt", store.check_digest
    save_checkpoint({"x": np.ones(2)}, path)

    def writing_then(*args: Any) -> None:
        compare(*args)
        with open(path, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"?")

    monkeypatch.setattr(store, "check_digest", writing_then)
    with pytest.raises(CheckpointError, match="which another program changed while it was read"):
        load_checkpoint(path)


def test_a_file_that_is_replaced_while_it_is_read_gives_one_of_the_two(tmp_path: pathlib.Path) -> None:
    path, done = tmp_path / "a.ckpt", threading.Event()
    save_checkpoint({"x": np.zeros(50_000), "y": np.zeros(50_000)}, path)
    errors = []

    def writing() -> None:
        try:
            for number in range(40):
                save_checkpoint({"x": np.full(50_000, number), "y": np.full(50_000, number)}, path)
        except BaseException as error:
            errors.append(error)
        done.set()

    thread = threading.Thread(target=writing)
    thread.start()
    seen = set()
    while not done.is_set():
        loaded = load_checkpoint(path)
        seen |= {(float(item.asnumpy().min()), float(item.asnumpy().max())) for item in loaded.values()}
        assert len({float(item.asnumpy().max()) for item in loaded.values()}) == 1
    thread.join()
    assert errors == [] and all(low == high for low, high in seen)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_with_the_name_of_a_leftover_is_left_alone(tmp_path: pathlib.Path) -> None:
    pipe = tmp_path / ".a.ckpt.4194303.deadbeef.tmp"
    os.mkfifo(pipe)
    assert load_latest_checkpoint(tmp_path) is None
    assert pipe.is_fifo()
