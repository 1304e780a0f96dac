"""Content of a checkpoint file: parameters, strings, states and facts, and a description that lists them.

The description is JSON in a separate tensor. A parameter's tensor has the name of the parameter, so that other
safetensors readers find it; names of tensors that only mixtrain reads begin with ``mixtrain:``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from mixtrain.serialization.checkpoint import RunState
from mixtrain.serialization.container import MAGIC, MAX_HEADER, Stored, check_digest, check_start, pack, unpack
from mixtrain.serialization.facts import check_facts
from mixtrain.serialization.files import not_a_checkpoint, open_regular, write_atomically
from mixtrain.serialization.hdf5 import SIGNATURE, as_container

DESCRIPTION: Final = "mixtrain:description"
_STATE: Final = "mixtrain:state:"
_PARAMETER: Final = "mixtrain:parameter:"
# Parsed JSON takes up to 25 times its length in memory.
MAX_DESCRIPTION: Final = 4 * 2**20
# Bytes read to recognize the kind of a file.
_START: Final = 128
# First bytes of other kinds of files.
_SIGNATURES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"PK", "a zip archive, as .keras, .npz and PyTorch files are"),
    (b"\x93NUMPY", "a NumPy file"),
    (b"\x80", "a pickle"),
    (b"\n", "a MindSpore checkpoint (protobuf), perhaps"),
)


def write_file(path: str, values: Mapping[str, Stored | str], run_state: RunState) -> None:
    """Write a checkpoint; an existing file is replaced only when the new one is complete.

    Args:
        path: The file.
        values: Arrays and strings by name; (uint16 array, "bfloat16") for that dtype.
        run_state: The state that a resumed run needs besides them.

    Raises: CheckpointError if a fact is invalid. ValueError if there are too many names for one file. OSError if the
        folder is missing or cannot be written.
    """
    facts = dict(run_state.facts)
    check_facts("save_checkpoint", path, facts)
    tensors: dict[str, Stored] = {
        _key(name): _as_bytes(value) if isinstance(value, str) else value for name, value in values.items()
    }
    tensors |= {_STATE + name: value for name, value in run_state.arrays.items()}
    description = _as_bytes(json.dumps({
        "parameters": list(values),
        "strings": [name for name, value in values.items() if isinstance(value, str)],
        "states": list(run_state.arrays), "facts": facts,
    }))
    if len(description) > MAX_DESCRIPTION:
        raise ValueError(
            f"save_checkpoint: expected at most {MAX_DESCRIPTION} bytes of names and facts; got {len(description)} for "
            f"{len(tensors)} tensors. Write several files, or shorter names."
        )
    write_atomically(path, pack({DESCRIPTION: description, **tensors}))


def read_file(path: str, is_selected: Callable[[str], bool]) -> tuple[dict[str, Stored | str], RunState]:
    """Read a checkpoint; the whole file is checked before anything is returned.

    Args:
        path: The file.
        is_selected: Whether the value of a name is returned.

    Returns: Arrays, strings and ``(uint16 array, "bfloat16")`` by name, in the order of writing; and the run state.

    Raises: CheckpointError if the file is not a checkpoint, or is damaged. ValueError if there is no such file. OSError
        if it cannot be opened.
    """
    with open_regular(path) as (file, size):
        start = file.read(_START)
        file.seek(0)
        if start.startswith(SIGNATURE):
            data = as_container(path, file, size)
        else:
            _refuse_foreign(path, start)
            check_start(path, start, size)
            modified = os.fstat(file.fileno()).st_mtime_ns
            check_digest(path, file)
            file.seek(0)
            try:
                data = file.read(size)
            except MemoryError as error:
                raise not_a_checkpoint(path, f"of {size} bytes, which do not fit in memory") from error
            # Only another program changes a file in place, between the check and the read: mixtrain replaces files.
            if len(data) != size or os.fstat(file.fileno()).st_mtime_ns != modified:
                raise not_a_checkpoint(path, "which another program changed while it was read")
    tensors = unpack(path, data)
    del data
    description = _description(path, tensors.pop(DESCRIPTION, None))
    names = {name: _key(name) for name in description["parameters"]}
    states = {name: _STATE + name for name in description["states"]}
    if {*names.values(), *states.values()} != set(tensors):
        raise not_a_checkpoint(path, "whose description does not match its tensors")
    check_facts("load_checkpoint", path, description["facts"])
    strings = set(description["strings"])
    values = {
        name: _text(path, name, tensors[key]) if name in strings else tensors[key]
        for name, key in names.items() if is_selected(name)
    }
    return values, RunState({name: tensors[key] for name, key in states.items()}, description["facts"])


def write_tensors(path: str, tensors: Mapping[str, Stored]) -> None:
    """Write a safetensors file of tensors alone, as `write_file` does."""
    write_atomically(path, pack(tensors))


def read_tensors(path: str, is_selected: Callable[[str], bool]) -> tuple[dict[str, Stored | str], RunState]:
    """Read a safetensors file of any program, as `read_file` does; a digest is checked where there is one of ours."""
    with open_regular(path) as (file, size):
        start = file.read(_START)
        file.seek(0)
        if start[8:].startswith(MAGIC):
            check_start(path, start, size)
            check_digest(path, file)
            file.seek(0)
        elif not 0 < int.from_bytes(start[:8], "little") <= min(size - 8, MAX_HEADER):
            raise not_a_checkpoint(path, "not a safetensors file, or a damaged one")
        tensors = unpack(path, file.read(size))
    if DESCRIPTION in tensors:
        return read_file(path, is_selected)
    return {name: value for name, value in tensors.items() if is_selected(name)}, RunState()


def _key(name: str) -> str:
    """Return the name of a parameter's tensor: that of the parameter, unless it is reserved in the file."""
    return f"{_PARAMETER}{name}" if name.startswith("mixtrain:") or name == "__metadata__" else name


def _as_bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def _description(path: str, tensor: Stored | None) -> dict[str, Any]:
    if not isinstance(tensor, np.ndarray) or tensor.dtype != np.uint8 or tensor.ndim != 1:
        raise not_a_checkpoint(path, "a safetensors file without mixtrain's description")
    if len(tensor) > MAX_DESCRIPTION:
        raise not_a_checkpoint(path, f"whose description has {len(tensor)} bytes, more than {MAX_DESCRIPTION}")
    try:
        description = json.loads(tensor.tobytes(), parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise not_a_checkpoint(path, f"whose description is not JSON that can be read: {error}"[:300]) from error
    lists = ("parameters", "strings", "states")
    is_object = isinstance(description, dict) and set(description) == {*lists, "facts"}
    if not is_object or not isinstance(description["facts"], dict):
        raise not_a_checkpoint(path, f"whose description is not an object with {', '.join(lists)} and facts")
    for part in lists:
        names = description[part]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise not_a_checkpoint(path, f"whose description's {part} are not a list of names")
        if len(set(names)) < len(names):
            raise not_a_checkpoint(path, f"whose description's {part} have a duplicate name")
    if not set(description["strings"]) <= set(description["parameters"]):
        raise not_a_checkpoint(path, "whose description lists a string that is not among its parameters")
    return description


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _text(path: str, name: str, value: Stored) -> str:
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8 or value.ndim != 1:
        raise not_a_checkpoint(path, f"whose string {name[:100]!r} is not bytes")
    try:
        return value.tobytes().decode()
    except UnicodeDecodeError as error:
        raise not_a_checkpoint(path, f"whose string {name[:100]!r} is not UTF-8") from error


def _refuse_foreign(path: str, start: bytes) -> None:
    """Raise an error for the file of another program, recognized by its first bytes."""
    if not start:
        raise not_a_checkpoint(path, "an empty file")
    # A checkpoint begins with the length of its header, in which any bytes may occur.
    if start[8:10] != b'{"':
        kinds = (kind for signature, kind in _SIGNATURES if start.startswith(signature))
        raise not_a_checkpoint(path, next(kinds, "something else"))
    if len(start) < _START:
        raise not_a_checkpoint(path, f"a damaged one of {len(start)} bytes")
