"""What a checkpoint file holds: parameters, states and strings by name, and facts; its description says which is which.

The description is JSON in a tensor of its own. A parameter's tensor has the parameter's name, so that other readers of
safetensors find it; the tensors that only mixtrain reads have names that begin with ``mixtrain:``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from mixtrain.serialization.checkpoint import RunState
from mixtrain.serialization.container import Stored, check_digest, check_start, packed, unpacked
from mixtrain.serialization.facts import check_facts
from mixtrain.serialization.files import not_a_checkpoint, opened, write_whole
from mixtrain.serialization.hdf5 import SIGNATURE, as_container

DESCRIPTION: Final = "mixtrain:description"
_STATE: Final = "mixtrain:state:"
_PARAMETER: Final = "mixtrain:parameter:"
# Parsed, JSON takes up to 25 times its length.
MAX_DESCRIPTION: Final = 4 * 2**20
_START: Final = 128
# How files that are not checkpoints begin, and what they are.
_SIGNATURES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"PK", "a zip archive, as .keras, .npz and PyTorch files are"),
    (b"\x93NUMPY", "a NumPy file"),
    (b"\x80", "a pickle"),
    (b"\n", "a MindSpore checkpoint (protobuf), perhaps"),
)


def write_file(path: str, values: Mapping[str, Stored | str], run_state: RunState) -> None:
    """Write a checkpoint; a file that was there stays as it is until the new one is complete.

    Args:
        path: The file.
        values: Arrays and strings by name; (uint16 array, "bfloat16") for that dtype.
        run_state: What a resumed run needs beside them.

    Raises:
        CheckpointError: The facts are not what a resumed run can use.
        ValueError: There are too many names for one file.
        OSError: The folder is missing or cannot be written.
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
        "states": list(run_state.arrays),
        "facts": facts,
    }))
    if len(description) > MAX_DESCRIPTION:
        raise ValueError(
            f"save_checkpoint: expected at most {MAX_DESCRIPTION} bytes of names and facts; got {len(description)} for "
            f"{len(tensors)} tensors. Write several files, or shorter names."
        )
    write_whole(path, packed({DESCRIPTION: description, **tensors}))


def read_file(path: str, wanted: Callable[[str], bool]) -> tuple[dict[str, Stored | str], RunState]:
    """Read a checkpoint: all of it is checked before any of it is returned.

    Args:
        path: The file.
        wanted: Whether the value of a name is returned.

    Returns:
        Arrays, strings and ``(uint16 array, "bfloat16")`` by name, in the order of writing; and the run's state.

    Raises:
        CheckpointError: The file is not a checkpoint, or is damaged.
        ValueError: There is no such file.
        OSError: It cannot be opened.
    """
    with opened(path) as (file, size):
        start = file.read(_START)
        file.seek(0)
        if start.startswith(SIGNATURE):
            data = as_container(path, file, size)
        else:
            _refuse_foreign(path, start)
            check_start(path, start, size)
            written = os.fstat(file.fileno()).st_mtime_ns
            check_digest(path, file)
            file.seek(0)
            try:
                data = file.read(size)
            except MemoryError as error:
                raise not_a_checkpoint(path, f"of {size} bytes, more than there is memory for") from error
            # Only another program writes into a file in place: mixtrain replaces it.
            if len(data) != size or os.fstat(file.fileno()).st_mtime_ns != written:
                raise not_a_checkpoint(path, "which another program changed while it was read")
    tensors = unpacked(path, data)
    del data
    description = _description(path, tensors.pop(DESCRIPTION, None))
    names = {name: _key(name) for name in description["parameters"]}
    states = {name: _STATE + name for name in description["states"]}
    if {*names.values(), *states.values()} != set(tensors):
        raise not_a_checkpoint(path, "whose description names other tensors than it has")
    check_facts("load_checkpoint", path, description["facts"])
    strings = set(description["strings"])
    values = {
        name: _text(path, name, tensors[key]) if name in strings else tensors[key]
        for name, key in names.items() if wanted(name)
    }
    return values, RunState({name: tensors[key] for name, key in states.items()}, description["facts"])


def _key(name: str) -> str:
    """Return the name of a parameter's tensor: its own, unless that means something else in the file."""
    return f"{_PARAMETER}{name}" if name.startswith("mixtrain:") or name == "__metadata__" else name


def _as_bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def _description(path: str, tensor: Stored | None) -> dict[str, Any]:
    """Return the description, its form checked."""
    if not isinstance(tensor, np.ndarray) or tensor.dtype != np.uint8 or tensor.ndim != 1:
        raise not_a_checkpoint(path, "a safetensors file without mixtrain's description")
    if len(tensor) > MAX_DESCRIPTION:
        raise not_a_checkpoint(path, f"whose description has {len(tensor)} bytes, more than {MAX_DESCRIPTION}")
    try:
        found = json.loads(tensor.tobytes(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise not_a_checkpoint(path, f"whose description is not JSON that can be read: {error}"[:300]) from error
    listed = ("parameters", "strings", "states")
    if not isinstance(found, dict) or set(found) != {*listed, "facts"} or not isinstance(found["facts"], dict):
        raise not_a_checkpoint(path, f"whose description is not an object with {', '.join(listed)} and facts")
    for part in listed:
        names = found[part]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise not_a_checkpoint(path, f"whose description's {part} are not a list of names")
        if len(set(names)) < len(names):
            raise not_a_checkpoint(path, f"whose description's {part} name one twice")
    if not set(found["strings"]) <= set(found["parameters"]):
        raise not_a_checkpoint(path, "whose description names a string that it does not have")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _text(path: str, name: str, value: Stored) -> str:
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8 or value.ndim != 1:
        raise not_a_checkpoint(path, f"whose string {name[:100]!r} is not bytes")
    try:
        return value.tobytes().decode()
    except UnicodeDecodeError as error:
        raise not_a_checkpoint(path, f"whose string {name[:100]!r} is not UTF-8") from error


def _refuse_foreign(path: str, start: bytes) -> None:
    """Refuse what is another program's, by its first bytes."""
    if not start:
        raise not_a_checkpoint(path, "an empty file")
    # A checkpoint begins with the length of its header, which may be any bytes.
    if start[8:10] != b'{"':
        kinds = (kind for signature, kind in _SIGNATURES if start.startswith(signature))
        raise not_a_checkpoint(path, next(kinds, "something else"))
    if len(start) < _START:
        raise not_a_checkpoint(path, f"a damaged one of {len(start)} bytes")
