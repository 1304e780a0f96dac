"""The checkpoint files of a run in a folder, as loops of scripts keep and remove them."""

from __future__ import annotations

import pathlib
import re

from mixtrain import checks


class CheckpointManager:
    """Lists and removes the checkpoint files of a run.

    Args: format: Ending of their names.

    Example: ``manager.update_ckpoint_filelist("runs", "lenet")`` lists ``lenet-1_100.ckpt`` and the others of the run.
    """

    def __init__(self, format: str = "ckpt") -> None:  # noqa: A002  MindSpore's name.
        self._format = format
        self._ckpoint_filelist: list[str] = []

    @property
    def ckpoint_filelist(self) -> list[str]:
        """The paths of the files that are listed."""
        return self._ckpoint_filelist

    @property
    def ckpoint_num(self) -> int:
        """The number of files that are listed."""
        return len(self._ckpoint_filelist)

    def update_ckpoint_filelist(self, directory: str, prefix: str) -> None:
        """List the files of a run: its `prefix`, a hyphen, the epoch and the step, without letters."""
        pattern = re.compile(rf"{re.escape(prefix)}-[^a-zA-Z]*\.{re.escape(self._format)}")
        files = pathlib.Path(directory).iterdir()
        self._ckpoint_filelist = [str(file) for file in files if pattern.fullmatch(file.name)]

    def remove_ckpoint_file(self, file_name: str) -> None:
        """Remove a file that is listed. Raises: ValueError if it is not."""
        path = next((path for path in self._ckpoint_filelist if pathlib.Path(path) == pathlib.Path(file_name)), None)
        if path is None:
            raise checks.fail_value(
                "remove_ckpoint_file", "file_name must be listed", file_name, "update_ckpoint_filelist(...) before"
            )
        pathlib.Path(path).unlink(missing_ok=True)
        self._ckpoint_filelist.remove(path)

    def remove_oldest_ckpoint_file(self) -> None:
        """Remove the file that was written first."""
        self.remove_ckpoint_file(min(self._ckpoint_filelist, key=_written))

    def keep_one_ckpoint_per_minutes(self, minutes: float, cur_time: float) -> None:
        """Remove all but the first of the files written in the last `minutes` before `cur_time`, in seconds."""
        recent = [path for path in self._ckpoint_filelist if cur_time - _written(path) < 60 * minutes]
        for path in sorted(recent, key=_written)[1:]:
            self.remove_ckpoint_file(path)


def _written(path: str) -> float:
    return pathlib.Path(path).stat().st_mtime


_CheckpointManager = CheckpointManager
