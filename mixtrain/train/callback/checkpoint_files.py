"""Checkpoint files of callbacks: folders, names, which files are kept, and the position of a run."""

from __future__ import annotations

import os
import re

from mixtrain import checks
from mixtrain.distribution.data_parallel import joint_devices
from mixtrain.serialization.parts import remove_checkpoint
from mixtrain.train.run_context import CallbackArguments

_SUFFIX = ".ckpt"
_BREAKPOINT_SUFFIX = f"_breakpoint{_SUFFIX}"


def make_folder(where: str, directory: str | os.PathLike[str] | None) -> str:
    """Create a folder if it is missing, and return its full path; None is the current folder."""
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
    """Return a prefix that no file in a folder has: `prefix`, or ``prefix_1``, ... if earlier runs left files there.

    `after_exception`: whether to look at files written after exceptions, or at the others.
    """
    pattern = re.compile(rf"{re.escape(prefix)}(?:_(\d+))?-")
    last_number = -1
    for name in os.listdir(folder):
        match = pattern.match(name)
        if match and name.endswith(_SUFFIX) and name.endswith(_BREAKPOINT_SUFFIX) == after_exception:
            last_number = max(last_number, int(match.group(1) or 0))
    return prefix if last_number < 0 else f"{prefix}_{last_number + 1}"


def run_position(arguments: CallbackArguments) -> dict[str, int]:
    """Return the epoch, step and steps per epoch of a run, as checkpoints store them (see `RunState`)."""
    names = {"epoch": "cur_epoch_num", "step": "cur_step_num", "batch_num": "batch_num"}
    position = {name: int(arguments.get(field, 0) or 0) for name, field in names.items()}
    if not position["batch_num"]:
        position["epoch_step"] = position["step"] - int(arguments.get("steps_before_epoch", 0))
    return position


def saves_together(arguments: CallbackArguments) -> bool:
    """Whether the weights are on devices of several processes, which must all take part where they are saved."""
    step = arguments.get("_step")
    return joint_devices(getattr(step, "parallel", None)) is not None


def refuse_saving_alone(where: str, what: str, arguments: CallbackArguments) -> None:
    """Refuse what saves in one process when others may not.

    Raises: ValueError if the processes must save together.
    """
    if saves_together(arguments):
        raise checks.fail_value(
            where, "the weights must be those of one process where one alone may save them", what,
            "mixtrain.CheckpointConfig(save_checkpoint_steps=...) for a ModelCheckpoint in every process",
        )


class KeptFiles:
    """The files that are still kept, oldest first: `max_files`; where that is 0 or None, one each `minutes`."""

    def __init__(self, max_files: int | None, minutes: int | None) -> None:
        self._max_files = max_files or 0
        self._seconds = 60 * (minutes or 0)
        self._files: list[tuple[str, float]] = []

    def add(self, path: str, now: float) -> None:
        """Add a file that was just written, and remove those that are no longer kept."""
        earlier = [entry for entry in self._files if entry[0] != path]
        if self._max_files:
            removed = earlier[: max(0, len(earlier) - self._max_files + 1)]
        else:
            # The oldest file of the last minutes is the one kept for them.
            removed = [entry for entry in earlier if now - entry[1] < self._seconds][1:]
        for old_path, _ in removed:
            remove_checkpoint(old_path)
        self._files = [*(entry for entry in earlier if entry not in removed), (path, now)]
