"""Checkpoints in parts: each process writes the pieces of large weights that its devices hold, to a file of its own.

The checkpoint itself names its parts, and is written when they are complete; a save that is repeated has parts of other
names, so that the one before stays whole until then.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import secrets
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import numpy as np

from mixtrain import backend, process_group
from mixtrain.distribution.processes import broadcast, in_any_process
from mixtrain.precision.master_weights import has_master, master_value
from mixtrain.serialization.checkpoint import RunState
from mixtrain.serialization.container import Stored
from mixtrain.serialization.files import not_a_checkpoint
from mixtrain.serialization.store import read_file, write_file
from mixtrain.serialization.values import stored

# From so many bytes on that lie on devices of several processes; below it, one gathers and writes them.
IN_PARTS_FROM: Final = 2**30
# The name of the text that names the parts.
_PARTS: Final = "mixtrain:parts"
_PART: Final = re.compile(r"[0-9a-f]{8}\.part\d+")


def write_parts(path: str, weights: Mapping[str, Any], order: list[str]) -> tuple[dict[str, str], list[str]]:
    """Write this process's part of a checkpoint; return the text that names all parts, by its name, and their files.

    Every process must call it; it returns when all parts are complete.

    Args:
        path: The checkpoint.
        weights: Variables that span processes, by name.
        order: The names of all values of the checkpoint, as they are read.

    Raises: OSError in every process if a part cannot be written.
    """
    group = process_group.current()
    number = backend.to_tensor(np.int32(secrets.randbits(31)))
    token = f"{int(backend.to_numpy(broadcast([number])[0])):08x}"
    files = [f"{os.path.basename(path)}.{token}.part{rank}" for rank in range(group.size)]
    part = os.path.join(os.path.dirname(path), files[group.rank])
    failure = None
    try:
        write_file(part, {
            f"{','.join(map(str, start))}:{name}": stored(piece)
            for name, weight in weights.items()
            for start, piece in backend.own_pieces(master_value(weight) if has_master(weight) else weight)
        }, RunState())
    except Exception as error:
        failure = error
    if in_any_process(failure is not None):
        with contextlib.suppress(FileNotFoundError):
            os.remove(part)
        raise failure or OSError(f"save_checkpoint: another process could not write its part of {path!r}.")
    shapes = {name: [*map(int, weight.shape)] for name, weight in weights.items()}
    return {_PARTS: json.dumps({"files": files, "shapes": shapes, "order": order})}, files


def read_whole(path: str, is_selected: Callable[[str], bool]) -> tuple[dict[str, Stored | str], RunState]:
    """Read a checkpoint as `read_file` does, with what its parts hold.

    Raises: CheckpointError also if a part is missing or damaged.
    """
    values, state = read_file(path, lambda name: name == _PARTS or is_selected(name))
    text = values.pop(_PARTS, None)
    if text is None:
        return values, state
    files, shapes, order = _named(path, text)
    pieces: dict[str, list[tuple[tuple[int, ...], Stored]]] = {name: [] for name in shapes if is_selected(name)}
    for file in files:
        part_path = os.path.join(os.path.dirname(path), file)
        if not os.path.exists(part_path):
            raise not_a_checkpoint(path, f"whose part {file[:100]!r} is missing")
        part, _ = read_file(part_path, lambda key: key.partition(":")[2] in pieces)
        for key, piece in part.items():
            start, _, name = key.partition(":")
            pieces[name].append((tuple(map(int, filter(None, start.split(",")))), piece))  # type: ignore[arg-type]
    values |= {name: _joined(path, name, shapes[name], found) for name, found in pieces.items()}
    return {name: values[name] for name in order if name in values}, state


def remove_checkpoint(path: str) -> None:
    """Remove a checkpoint and its parts, if there is one: the user, or another process, may have removed it."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    remove_parts(path)


def remove_parts(path: str, kept: Collection[str] = ()) -> None:
    """Remove the parts of a checkpoint, but for the files that are kept."""
    folder, base = os.path.split(path)
    for name in os.listdir(folder or os.curdir):
        if name.startswith(f"{base}.") and _PART.fullmatch(name, len(base) + 1) and name not in kept:
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(folder, name))


def _named(path: str, text: Any) -> tuple[list[str], dict[str, list[int]], list[str]]:
    """Return the files, shapes and order of names that a text of `write_parts` holds."""
    try:
        named = json.loads(text)
        files, shapes, order = named["files"], named["shapes"], named["order"]
        # Files of the checkpoint's own folder alone are opened.
        if all(os.path.basename(file) == file for file in files) and {*shapes} <= {*order}:
            return files, {name: [*map(int, shape)] for name, shape in shapes.items()}, order
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise not_a_checkpoint(path, f"whose list of parts cannot be read: {error}"[:300]) from error
    raise not_a_checkpoint(path, "whose list of parts names files of another folder, or unknown weights")


def _joined(path: str, name: str, shape: list[int], pieces: list[tuple[tuple[int, ...], Stored]]) -> Stored:
    """Return the array that pieces make, each given with the index at which it begins."""
    arrays = [(start, piece if isinstance(piece, np.ndarray) else piece[0]) for start, piece in pieces]
    fits = all(
        len(start) == array.ndim == len(shape)
        and all(first + length <= size for first, length, size in zip(start, array.shape, shape, strict=True))
        for start, array in arrays
    )
    if not fits or sum(array.size for _, array in arrays) != math.prod(shape):
        raise not_a_checkpoint(path, f"whose parts do not hold all of {name[:100]!r}")
    whole = np.empty(shape, arrays[0][1].dtype)
    for start, array in arrays:
        whole[tuple(slice(first, first + length) for first, length in zip(start, array.shape, strict=True))] = array
    first = pieces[0][1]
    return whole if isinstance(first, np.ndarray) else (whole, first[1])
