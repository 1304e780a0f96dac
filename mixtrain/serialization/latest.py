"""`load_latest_checkpoint`: the intact checkpoint of a folder that is furthest on in its run."""

from __future__ import annotations

import dataclasses
import os
import re
import warnings
from collections.abc import Iterator
from typing import Final

from mixtrain import checks
from mixtrain.errors import CheckpointError
from mixtrain.serialization.checkpoint import Checkpoint, position_of, said
from mixtrain.serialization.files import finish_writing, remove_leftovers
from mixtrain.serialization.into_net import load_param_into_net
from mixtrain.serialization.parts import read_whole
from mixtrain.serialization.read import read_checkpoint, with_parameters
from mixtrain.typing import Network

_WHERE: Final = "load_latest_checkpoint"
# `OnRequestExit` writes into a folder of this name.
_FOLDERS: Final = ("", "rank_0")


def load_latest_checkpoint(directory: str | os.PathLike[str], net: Network | None = None) -> Checkpoint | None:
    """Read the intact checkpoint in a folder that is furthest on: with most epochs, and most batches of the next one.

    Files of `ModelCheckpoint`, `BackupAndRestore` and `OnRequestExit` (in ``rank_0``) are considered, each by the
    position in the run that it holds. Their times, which clocks and copies change, decide only between files of one
    position; there is a warning if another file was written later. Damaged files are skipped with a warning; files that
    no run wrote, and those that `ModelCheckpoint` writes after an exception, are skipped without one. Temporary files
    of processes that were killed are removed.

    Args:
        directory: The folder.
        net: A network, or ``model.train_network``, into which it is loaded; None for none.

    Returns: The checkpoint; None if the folder has none, or does not exist.

    Raises: TypeError if `directory` is not a path. NotADirectoryError if it is a file. RuntimeError if the checkpoint
        does not match `net`.

    Example: ``load_latest_checkpoint("./checkpoints", model.train_network)``.
    """
    checkpoint = latest_checkpoint(directory)
    if checkpoint is None:
        return None
    if net is not None:
        load_param_into_net(net, checkpoint)
    return with_parameters(checkpoint)


def latest_checkpoint(directory: str | os.PathLike[str]) -> Checkpoint | None:
    """Return what `load_latest_checkpoint` does, with arrays in place of Parameters."""
    checks.instance(_WHERE, "directory", directory, (str, os.PathLike), 'directory="./checkpoints"')
    root = os.path.realpath(os.fspath(directory))
    if os.path.exists(root) and not os.path.isdir(root):
        raise NotADirectoryError(f"{_WHERE}: expected a folder; got the file {root!r}. Write its folder.")
    finish_writing()
    candidates = sorted(_candidates(root), reverse=True)
    for candidate in candidates:
        try:
            checkpoint = read_checkpoint(candidate.path)
        except (CheckpointError, OSError, ValueError):  # Another process has replaced or removed the file.
            continue
        _warn_of_later_file(candidate, candidates)
        return checkpoint
    return None


@dataclasses.dataclass(frozen=True, order=True)
class _Candidate:
    """A checkpoint of a run, ordered by its position, then by its time and the numbers in its name."""

    position: tuple[int, int]
    modified: int
    numbers: tuple[int, ...]
    path: str


def _candidates(root: str) -> Iterator[_Candidate]:
    """Yield the intact checkpoints of runs in a folder; warn of damaged ones."""
    for folder in (os.path.join(root, name) for name in _FOLDERS):
        if not os.path.isdir(folder):
            continue
        remove_leftovers(folder)
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".ckpt") or name.endswith("_breakpoint.ckpt"):
                continue
            path = os.path.join(folder, name)
            try:
                facts = read_whole(path, lambda _: False)[1].facts
                modified = os.stat(path).st_mtime_ns
            except (CheckpointError, OSError) as error:
                warnings.warn(f"{_WHERE}: {path!r} is left out: {error}", stacklevel=4)
                continue
            except ValueError:  # Another process has removed the file.
                continue
            if facts.get("epoch") is not None:
                numbers = tuple(int(part) for part in re.findall(r"\d+", name))
                yield _Candidate(position_of(facts), modified, numbers, path)


def _warn_of_later_file(chosen: _Candidate, candidates: list[_Candidate]) -> None:
    last = max(candidates, key=lambda candidate: candidate.modified)
    if last.modified > chosen.modified and last.position < chosen.position:
        warnings.warn(
            f"{_WHERE}: {chosen.path!r} is taken, which is furthest on ({said(chosen.position)}), although "
            f"{last.path!r} ({said(last.position)}) has a later time. For another run, write another folder.",
            stacklevel=4,
        )
