"""`load_latest_checkpoint`: the newest intact checkpoint in a folder, however the process that wrote it ended."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from typing import Final

from mixtrain import checks
from mixtrain.errors import CheckpointError
from mixtrain.serialization.checkpoint import Checkpoint
from mixtrain.serialization.files import remove_leftovers
from mixtrain.serialization.into_net import load_param_into_net
from mixtrain.serialization.read import read_checkpoint
from mixtrain.typing import Network

_WHERE: Final = "load_latest_checkpoint"
# `OnRequestExit` writes into a folder of this name.
_FOLDERS: Final = ("", "rank_0")


def load_latest_checkpoint(directory: str | os.PathLike[str], net: Network | None = None) -> Checkpoint | None:
    """Read the newest intact checkpoint that a run wrote into a folder.

    Files of `ModelCheckpoint`, `BackupAndRestore` and `OnRequestExit` (in ``rank_0``) are considered, the newest first.
    Damaged files are skipped with a warning; files that no run wrote, and those that `ModelCheckpoint` writes after an
    exception, are skipped without one. Temporary files of processes that were killed are removed.

    Args:
        directory: The folder.
        net: A network, or ``model.train_network``, into which it is loaded; None for none.

    Returns:
        The checkpoint; None if the folder has none, or does not exist.

    Raises:
        TypeError: `directory` is not a path.
        NotADirectoryError: It is a file.
        RuntimeError: The checkpoint does not match `net`.

    Example:
        >>> import tempfile
        >>> load_latest_checkpoint(tempfile.mkdtemp()) is None
        True
    """
    checks.instance(_WHERE, "directory", directory, (str, os.PathLike), 'directory="./checkpoints"')
    root = os.path.realpath(os.fspath(directory))
    if os.path.exists(root) and not os.path.isdir(root):
        raise NotADirectoryError(f"{_WHERE}: expected a folder; got the file {root!r}. Write its folder.")
    for path in _newest_first(root):
        try:
            checkpoint = read_checkpoint(path)
        except (CheckpointError, OSError) as error:
            warnings.warn(f"{_WHERE}: {path!r} is left out: {error}", stacklevel=2)
            continue
        except ValueError:  # Another process has removed the file.
            continue
        if checkpoint.epoch is not None:
            if net is not None:
                load_param_into_net(net, checkpoint)
            return checkpoint
    return None


def _newest_first(root: str) -> list[str]:
    files: list[tuple[int, list[int], str]] = []
    for folder in (os.path.join(root, name) for name in _FOLDERS):
        if not os.path.isdir(folder):
            continue
        remove_leftovers(folder)
        for name in os.listdir(folder):
            if name.endswith(".ckpt") and not name.endswith("_breakpoint.ckpt"):
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    # Files with the same modification time are ordered by epoch and step, the numbers in their names.
                    files.append((os.stat(path).st_mtime_ns, [int(part) for part in re.findall(r"\d+", name)], path))
    return [path for *_, path in sorted(files, reverse=True)]
