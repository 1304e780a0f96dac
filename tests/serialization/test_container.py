"""The container: plain safetensors whose digest covers every byte of it."""

from __future__ import annotations

import hashlib
import pathlib

import numpy as np
import pytest
import safetensors
from safetensors.numpy import load_file, save_file

from mixtrain.errors import CheckpointError
from mixtrain.serialization import load_checkpoint, save_checkpoint
from mixtrain.serialization.container import MAX_HEADER, pack
from mixtrain.serialization.store import MAX_DESCRIPTION

VALUES = {
    "flag": np.array([True]), "wide": np.arange(4.0), "half": np.arange(3, dtype=np.float16), "none": np.zeros((0, 3)),
    "swapped": np.arange(5, dtype=">f4"), "strided": np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2],
}


def test_the_librarys_own_reader_finds_every_value(tmp_path: pathlib.Path) -> None:
    save_checkpoint(VALUES, tmp_path / "a.ckpt")
    result = load_file(tmp_path / "a.ckpt")
    for name, value in VALUES.items():
        np.testing.assert_array_equal(result[name], value)
        assert result[name].dtype == value.dtype.newbyteorder("="), name


def test_the_digest_is_that_of_the_file_with_zeros_in_its_place(tmp_path: pathlib.Path) -> None:
    save_checkpoint(VALUES, tmp_path / "a.ckpt")
    with safetensors.safe_open(tmp_path / "a.ckpt", "np") as read:
        digest = read.metadata()["mixtrain.checkpoint"].removeprefix("version 2, sha256 ")
    data = (tmp_path / "a.ckpt").read_bytes()
    assert data.count(digest.encode()) == 1 and len(digest) == 64
    assert hashlib.sha256(data.replace(digest.encode(), b"0" * 64)).hexdigest() == digest


def test_every_tensor_begins_at_a_multiple_of_its_numbers_size() -> None:
    start, *values = pack({name: np.zeros(3, dtype) for name, dtype in zip("abcd", "?def", strict=True)})
    assert len(start) % 8 == 0
    assert [len(value) for value in values] == [24, 12, 6, 3]


def test_the_same_values_give_the_same_bytes(tmp_path: pathlib.Path) -> None:
    for name in ("a.ckpt", "b.ckpt"):
        save_checkpoint(VALUES, tmp_path / name)
    assert (tmp_path / "a.ckpt").read_bytes() == (tmp_path / "b.ckpt").read_bytes()


def test_safetensors_of_another_program_are_refused(tmp_path: pathlib.Path) -> None:
    save_file({"weight": np.ones(300)}, tmp_path / "a.ckpt", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="not a checkpoint, or a damaged one"):
        load_checkpoint(tmp_path / "a.ckpt")


def test_what_could_not_be_read_again_is_not_written(tmp_path: pathlib.Path) -> None:
    number = np.zeros((), np.float32)
    with pytest.raises(ValueError, match=f"at most {MAX_HEADER} bytes"):
        pack({"x" * 1000 + str(index): number for index in range(8500)})
    with pytest.raises(ValueError, match=f"at most {MAX_DESCRIPTION} bytes"):
        save_checkpoint({"x" * 1000 + str(index): number for index in range(4300)}, tmp_path / "a.ckpt")
    with pytest.raises(ValueError, match="lone surrogate"):
        save_checkpoint({"\ud800": number}, tmp_path / "a.ckpt")
    assert list(tmp_path.iterdir()) == []
