"""Checkpoints in HDF5, of before safetensors: whole ones are read, in another process; what leads elsewhere is not."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pytest

from mixtrain.errors import CheckpointError
from mixtrain.serialization import hdf5, hdf5_worker, load_checkpoint, save_checkpoint
from tests.serialization.hdf5_files import put, write_old

SECRET = np.arange(6, dtype=np.float32)


def test_an_old_checkpoint_is_read_and_saved_as_a_new_one(tmp_path: pathlib.Path) -> None:
    values: dict[str, Any] = {
        "fc/weight": np.arange(6, dtype=np.float32).reshape(2, 3), "half": (np.array([16256], np.uint16), "bfloat16"),
        "words": "hey, ünïcode", "none": np.zeros((0, 2), np.float32), ".": np.array(3, np.int32),
        "flag": np.array([True, False]),
    }
    write_old(tmp_path / "old.ckpt", values, {"counts": np.arange(5, dtype=np.int32)}, {"epoch": 3, "step": 12})
    old = load_checkpoint(tmp_path / "old.ckpt")
    save_checkpoint(old, tmp_path / "new.ckpt")
    assert (tmp_path / "new.ckpt").read_bytes()[8:30] == b'{"__metadata__":{"mixt'
    for result in (old, load_checkpoint(tmp_path / "new.ckpt")):
        assert list(result) == list(values) and result["words"] == "hey, ünïcode"
        assert result["fc/weight"].asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]
        assert (result["half"].dtype, float(result["half"][0])) == ("bfloat16", 1.0)
        assert (result.epoch, result.step) == (3, 12)
        assert result.run_state.arrays["counts"].tolist() == [0, 1, 2, 3, 4]


# ---- files that were made to read others ------------------------------------------------------------------------
def external_link(file: Any) -> None:
    file["parameters/secret"] = h5py.ExternalLink("secret.h5", "/x")


def soft_link(file: Any) -> None:
    file["parameters/other"] = h5py.SoftLink("/parameters/weight")


def alias(file: Any) -> None:
    file["parameters/other"] = file["parameters/weight"]


def raw_storage(file: Any) -> None:
    dataset = file["parameters"].create_dataset("x", (6,), "f4", external=[("secret.raw", 0, 24)])
    dataset.attrs["crc32"] = np.uint32(0)


def virtual(file: Any) -> None:
    layout = h5py.VirtualLayout((6,), "f4")
    layout[:] = h5py.VirtualSource("secret.h5", "x", (6,))
    file["parameters"].create_virtual_dataset("x", layout)


def compressed(file: Any) -> None:
    dataset = file["parameters"].create_dataset("x", data=SECRET, compression="gzip")
    dataset.attrs["crc32"] = np.uint32(0)


def enormous(file: Any) -> None:
    file["parameters"].create_dataset("x", (2**40,), "f4")


def linked_group(file: Any) -> None:
    del file["state"]
    file["state"] = h5py.ExternalLink("secret.h5", "/")


def another_checksum(file: Any) -> None:
    file["parameters/weight"].attrs["crc32"] = np.uint32(1)


def text_as_numbers(file: Any) -> None:
    file["parameters/weight"].attrs["dtype"] = "str"


def compound(file: Any) -> None:
    put(file["parameters"], "x", np.zeros(2, np.uint8)).attrs["dtype"] = "object"


def two_of_a_name(file: Any) -> None:
    put(file["parameters"], "x", np.zeros(2, np.uint8)).attrs["name"] = "weight"


def nested_group(file: Any) -> None:
    file["parameters"].create_group("inner")


HOSTILE: dict[Callable[[Any], None], str] = {
    external_link: "a link", soft_link: "a link", linked_group: "a link", nested_group: "not a value",
    alias: "two names of one value", two_of_a_name: "two values of one name", raw_storage: "outside this file",
    virtual: "outside this file", compressed: "compressed", enormous: "longer than the file",
    another_checksum: "checksum", text_as_numbers: "another kind", compound: "another kind",
}


def hostile_file(folder: pathlib.Path, change: Callable[[Any], None]) -> pathlib.Path:
    with h5py.File(folder / "secret.h5", "w") as file:
        put(file, "x", SECRET)
    (folder / "secret.raw").write_bytes(SECRET.tobytes())
    path = folder / "hostile.ckpt"
    write_old(path, {"weight": np.ones(300, np.float32)}, facts={"epoch": 1})
    with h5py.File(path, "r+") as file:
        change(file)
    return path


@pytest.mark.parametrize(("change", "says"), HOSTILE.items(), ids=[change.__name__ for change in HOSTILE])
def test_the_worker_refuses(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], None], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    data = hostile_file(tmp_path, change).read_bytes()
    with pytest.raises(ValueError, match=says):
        hdf5_worker.convert(data)


@pytest.mark.slow
def test_what_the_worker_refuses_is_a_checkpoint_error_that_names_the_file(tmp_path: pathlib.Path) -> None:
    with pytest.raises(CheckpointError, match="hostile.ckpt', an HDF5 file of another kind, or a damaged one"):
        load_checkpoint(hostile_file(tmp_path, external_link))


# ---- the process ----------------------------------------------------------------------------------------------
GOOD = "sys.stdout.buffer.write(hdf5_worker.convert(data))"
WORKERS: dict[str, tuple[str, str]] = {
    "crashes": (f"import os; os.abort(); {GOOD}", "an HDF5 file"),
    "opens another file": (f"open('/etc/passwd'); {GOOD}", "an HDF5 file"),
    "loads a library": (f"import sqlite3; {GOOD}", "an HDF5 file"),
    "starts a process": (f"import os; os.system('true') and os.abort(); {GOOD}", "an HDF5 file"),
    "takes all memory": (f"bytearray(2**31); {GOOD}", "an HDF5 file"),
    "never ends": ("while True: pass", "an HDF5 file"),
    "answers with nothing": ("", "a damaged one"),
    "answers with more than the file holds": ("sys.stdout.write('x' * 17 * 2**20)", "an HDF5 file"),
    "answers with something else": ("print('x' * 1000)", "a damaged one"),
    "answers without a description": (
        "sys.stdout.buffer.write(hdf5_worker.safetensors.numpy.save({}))", "without mixtrain's description"
    ),
}


def with_worker(monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path, does: str) -> pathlib.Path:
    """Return an old checkpoint; the worker that reads it does something else, once its limits are set."""
    path, script = folder / "old.ckpt", folder / "worker.py"
    write_old(path, {"weight": np.ones(3, np.float32)})
    script.write_text(
        f"import sys; sys.path.append({os.path.dirname(hdf5_worker.__file__)!r}); import hdf5_worker\n"
        f"data = sys.stdin.buffer.read(); hdf5_worker.limit(len(data))\n{does}\n"
    )
    monkeypatch.setattr(hdf5, "_WORKER", str(script))
    return path


@pytest.mark.slow
def test_a_worker_that_does_nothing_else_gives_the_values(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_worker(monkeypatch, tmp_path, GOOD)
    assert load_checkpoint(path)["weight"].asnumpy().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize(("does", "says"), WORKERS.values(), ids=WORKERS.keys())
def test_nothing_is_loaded_from_a_worker_that(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, does: str, says: str
) -> None:
    with pytest.raises(CheckpointError, match=says):
        load_checkpoint(with_worker(monkeypatch, tmp_path, does))


@pytest.mark.slow
def test_malformed_facts_of_an_old_file_are_refused_too(tmp_path: pathlib.Path) -> None:
    write_old(tmp_path / "old.ckpt", {"weight": np.ones(3, np.float32)}, facts=json.loads('{"epoch": "three"}'))
    with pytest.raises(CheckpointError, match="fact 'epoch' of .*old.ckpt' to be an int.*got 'three'"):
        load_checkpoint(tmp_path / "old.ckpt")


def test_this_process_never_parses_hdf5_to_read_a_checkpoint() -> None:
    imported = {name for name, module in vars(hdf5).items() if type(module) is type(sys)}
    assert imported == {"os", "subprocess", "sys", "threading"}
