"""The file: whole or not at all, and nothing else is taken for one."""

from __future__ import annotations

import os
import pathlib
import pickle
import zipfile
from collections.abc import Callable

import h5py
import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
from mixtrain.errors import CheckpointError
from mixtrain.serialization import files, load_checkpoint, save_checkpoint


def written(path: pathlib.Path, value: float = 1.0) -> bytes:
    save_checkpoint({"x": np.full(300, value, np.float32), "y": np.ones(3)}, str(path))
    return path.read_bytes()


def as_zip(path: pathlib.Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")


def as_hdf5(path: pathlib.Path) -> None:
    with h5py.File(path, "w") as file:
        file["layers"] = np.ones(3)


def as_newer(path: pathlib.Path) -> None:
    path.write_bytes(written(path).replace(b"version 2", b"version 3"))


FOREIGN: dict[str, tuple[Callable[[pathlib.Path], object], str]] = {
    "empty": (lambda path: path.write_bytes(b""), "an empty file"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps({"x": 1})), "a pickle"),
    "keras": (as_zip, "a zip archive, as .keras"),
    "mindspore": (lambda path: path.write_bytes(b"\n\x19\n\x06weight\x12\x0f\n\x02\x01\x01"), "a MindSpore"),
    "short": (lambda path: path.write_bytes(written(path)[:100]), "a damaged one of 100 bytes"),
    "hdf5": (as_hdf5, "an HDF5 file of another kind"),
    "text": (lambda path: path.write_text("hello" * 20), "something else"),
    "newer": (as_newer, "of a newer mixtrain"),
}


@pytest.mark.parametrize(("make", "says"), FOREIGN.values(), ids=FOREIGN.keys())
def test_a_foreign_file_is_named_and_told_what_was_expected(
    tmp_path: pathlib.Path, make: Callable[[pathlib.Path], object], says: str
) -> None:
    path = tmp_path / "foreign.ckpt"
    make(path)
    with pytest.raises(CheckpointError, match=says) as caught:
        load_checkpoint(str(path))
    assert "foreign.ckpt" in str(caught.value) and "mixtrain.checkpoint" in str(caught.value)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, mixtrain.MixtrainError)


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.ckpt"
    whole = written(path)
    for length in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError):
            load_checkpoint(str(path))


def test_a_changed_byte_is_refused_wherever_it_is(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.ckpt"
    whole = written(path)
    for place in range(0, len(whole), 13):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1:])
        with pytest.raises(CheckpointError):
            load_checkpoint(str(path))


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_no_litter(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "a.ckpt"
    before = written(path)

    def failing(*args: object) -> None:
        raise error

    monkeypatch.setattr(files.os, "fsync", failing)
    with pytest.raises(type(error)):
        written(path, 2.0)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.ckpt"]


def test_a_thread_that_cannot_write_says_so_at_the_next_call(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(files.os, "fsync", failing)
    save_checkpoint(nn.Dense(1, 1), str(tmp_path / "a.ckpt"), async_save=True)
    with pytest.raises(OSError, match="disk full"):
        load_checkpoint(str(tmp_path / "a.ckpt"))
    assert os.listdir(tmp_path) == []
