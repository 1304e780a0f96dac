"""The files of one `ModelCheckpoint`: their names, and which of them are kept."""

from __future__ import annotations

import os
import re

from mixtrain import checks

_ENDING = ".ckpt"
_BREAKPOINT = f"_breakpoint{_ENDING}"


def make_folder(where: str, directory: str | os.PathLike[str] | None) -> str:
    """Return a folder's full path, made where it is missing; None is the present folder.

    Raises:
        TypeError: `directory` is no str.
        ValueError: It is empty.
        NotADirectoryError: It is a file, or lies below one.
        PermissionError: It cannot be made or written.
    """
    if directory is None:
        return os.getcwd()
    if not isinstance(directory, (str, os.PathLike)):
        raise checks.fail_type(where, "the directory must be a str", directory, 'directory="./checkpoints"')
    name = os.fspath(directory)
    if not name.strip():
        raise checks.fail_value(where, "the directory must not be empty", directory, 'directory="./checkpoints"')
    path = os.path.realpath(name)
    if os.path.exists(path) and not os.path.isdir(path):
        raise NotADirectoryError(f"{where}: expected a folder; got the file {path!r}. Write another directory.")
    os.makedirs(path, exist_ok=True)
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{where}: expected a folder to write in; got {path!r}. Write another directory.")
    return path


def free_prefix(folder: str, prefix: str, *, after_exception: bool = False) -> str:
    """Return a prefix that no file in a folder has: `prefix`, or `prefix_1`, ... where earlier runs left theirs.

    Args:
        folder: The folder.
        prefix: What was asked for.
        after_exception: Whether files that exceptions left are looked at, or the others.
    """
    pattern = re.compile(rf"{re.escape(prefix)}(?:_(\d+))?-")
    taken = -1
    for name in os.listdir(folder):
        match = pattern.match(name)
        if match and name.endswith(_ENDING) and name.endswith(_BREAKPOINT) == after_exception:
            taken = max(taken, int(match.group(1) or 0))
    return prefix if taken < 0 else f"{prefix}_{taken + 1}"


class KeptFiles:
    """The files that were written and are still kept, oldest first.

    Args:
        at_most: How many there may be; 0 or None for no limit by number.
        minutes: How many minutes of a run one file is kept for, where there is no limit by number.
    """

    def __init__(self, at_most: int | None, minutes: int | None) -> None:
        self._at_most = at_most or 0
        self._seconds = 60 * (minutes or 0)
        self._files: list[tuple[str, float]] = []

    def add(self, path: str, now: float) -> None:
        """Take in a file that was just written, and remove those it makes superfluous.

        Args:
            path: The file.
            now: The time, in seconds.
        """
        earlier = [entry for entry in self._files if entry[0] != path]
        keep = len(earlier)
        if self._at_most:
            keep = self._at_most - 1
            superfluous, earlier = earlier[: max(0, len(earlier) - keep)], earlier[max(0, len(earlier) - keep):]
        else:
            # Of the files of the last minutes the oldest stays, to stand for them.
            recent = [entry for entry in earlier if now - entry[1] < self._seconds]
            superfluous = recent[1:]
            earlier = [entry for entry in earlier if entry not in superfluous]
        for old, _ in superfluous:
            if os.path.exists(old):
                os.remove(old)
        self._files = [*earlier, (path, now)]
