"""The file: HDF5 with one dataset for each value and a checksum beside it, written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import h5py
import numpy as np

from mixtrain.errors import CheckpointError
from mixtrain.serialization.checkpoint import RunState

FORMAT: Final = "mixtrain.checkpoint"
VERSION: Final = 1
# How files that are no checkpoint begin, and what they are.
_SIGNATURES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file of another kind, or a damaged one"),
    (b"PK", "a zip archive, as .keras, .npz and PyTorch files are"),
    (b"\x93NUMPY", "a NumPy file"),
    (b"\x80", "a pickle"),
    (b"\n", "a MindSpore checkpoint (protobuf), perhaps"),
)


def write_file(path: str, values: Mapping[str, Any], run_state: RunState) -> None:
    """Write a checkpoint; a file that was there stays as it is until the new one is complete.

    Args:
        path: The file.
        values: Arrays and strings by name; (uint16 array, "bfloat16") for that format.
        run_state: What a resumed run needs beside them.

    Raises:
        OSError: The folder is missing or cannot be written.
    """
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"save_checkpoint: expected a folder that exists; got {folder!r}. Write os.makedirs({folder!r}) before."
        )
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        # The newest layout has checksums of its own in everything but the values.
        with h5py.File(temporary, "x", libver="latest", track_order=True) as file:
            file.attrs["format"], file.attrs["version"] = FORMAT, VERSION
            _put(file, "facts", _as_text(json.dumps(dict(run_state.facts))))
            for group, entries in (("parameters", values), ("state", run_state.arrays)):
                into = file.create_group(group, track_order=True)
                for entry, value in entries.items():
                    _put(into, entry, _as_text(value) if isinstance(value, str) else value)
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def read_file(path: str, wanted: Callable[[str], bool]) -> tuple[dict[str, Any], RunState]:
    """Read a checkpoint.

    Args:
        path: The file.
        wanted: Says of a name whether its value is read.

    Returns:
        Arrays, strings and ``(uint16 array, "bfloat16")`` by name, in the order of writing; and the run's state.

    Raises:
        CheckpointError: The file is none, or is damaged.
        OSError: It cannot be opened.
    """
    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                raise _no_checkpoint(path, _kind_of(path))
            if int(file.attrs["version"]) > VERSION:
                raise _no_checkpoint(path, f"version {int(file.attrs['version'])}, of a newer mixtrain")
            values = {name: _taken(path, item) for name, item in _items(file["parameters"]) if wanted(name)}
            arrays = {name: _taken(path, item) for name, item in _items(file["state"])}
            facts = json.loads(_taken(path, file["facts"]))
    except (CheckpointError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # h5py says that a file is damaged in many ways
        raise _no_checkpoint(path, _kind_of(path)) from error
    return values, RunState(arrays, facts)


def _as_text(text: str) -> tuple[np.ndarray, str]:
    return np.frombuffer(text.encode(), np.uint8), "str"


def _put(group: Any, name: str, value: Any) -> None:
    """Write one value; one with a format that HDF5 lacks is a pair of numbers and the format's name."""
    array, dtype = value if isinstance(value, tuple) else (value, None)
    key = name if name not in ("", ".", "..") and "/" not in name else f"#{len(group)}"
    dataset = group.create_dataset(key, data=array)
    dataset.attrs["crc32"] = np.uint32(_checksum(array))
    if key != name:
        dataset.attrs["name"] = name
    if dtype is not None:
        dataset.attrs["dtype"] = dtype


def _items(group: Any) -> list[tuple[str, Any]]:
    return [(item.attrs.get("name", key), item) for key, item in group.items()]


def _taken(path: str, dataset: Any) -> Any:
    """Return one value, after its checksum."""
    array = np.asarray(dataset[()])
    if _checksum(array) != int(dataset.attrs["crc32"]):
        raise _no_checkpoint(path, f"a damaged one: the checksum of {dataset.name} differs")
    dtype = dataset.attrs.get("dtype")
    if dtype == "str":
        return array.tobytes().decode()
    return array if dtype is None else (array, dtype)


def _checksum(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _kind_of(path: str) -> str:
    """Return what a file seems to be, by its first bytes."""
    with open(path, "rb") as file:
        start = file.read(16)
    if not start:
        return "an empty file"
    return next((kind for signature, kind in _SIGNATURES if start.startswith(signature)), "something else")


def _no_checkpoint(path: str, found: str) -> CheckpointError:
    return CheckpointError(
        f"load_checkpoint: expected a checkpoint that mixtrain wrote (HDF5, format {FORMAT!r}, up to version "
        f"{VERSION}); got {path!r}, {found}. Write a file of save_checkpoint or ModelCheckpoint; values of other "
        "frameworks come in as save_checkpoint({name: array}, ...)."
    )
