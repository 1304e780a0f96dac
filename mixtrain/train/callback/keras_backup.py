"""What Keras's `BackupAndRestore` cannot hold of a Keras network's run, written beside its files and read again."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import keras

from mixtrain.serialization.background import finish_writing
from mixtrain.serialization.read import load_checkpoint
from mixtrain.serialization.save import write_checkpoint
from mixtrain.train.run_context import CallbackArguments

_FILE = "mixtrain.ckpt"
_PLACE = {"epoch": "cur_epoch_num", "step": "cur_step_num", "batch_num": "batch_num"}


class BesideBackup:
    """The loss scale, random states and mixtrain's optimizer, in ``mixtrain.ckpt`` in the folder of Keras's backup.

    Args:
        callback: The callback of Keras's.
    """

    def __init__(self, callback: keras.callbacks.BackupAndRestore) -> None:
        folder = os.fspath(callback.backup_dir)
        self._metadata_file = os.path.join(folder, "training_metadata.json")
        self._path = os.path.join(folder, _FILE)
        self._written: Any = None

    def keep(self, arguments: CallbackArguments) -> None:
        """Write the file, where Keras has just written its own.

        Args:
            arguments: The state of the run.
        """
        moment = self._moment()
        if moment is None or moment == self._written:
            return
        place = {name: int(arguments.get(key, 0) or 0) for name, key in _PLACE.items()}
        write_checkpoint(arguments.train_network, self._path, False, None, place={**place, **moment})
        finish_writing()
        self._written = moment

    def take_up(self, arguments: CallbackArguments) -> None:
        """Put back what the file holds, where Keras has just put back its own.

        Args:
            arguments: The state of the run.
        """
        self._written = moment = self._moment()
        if moment is None:
            return
        if os.path.isfile(self._path):
            checkpoint = load_checkpoint(self._path)
            if {name: checkpoint.run_state.facts.get(name) for name in moment} == moment:
                load_checkpoint(self._path, arguments.train_network)
                return
        if arguments.get("loss_scale_manager") is not None:
            warnings.warn(
                f"BackupAndRestore: Keras's file holds no loss scale, and no {_FILE} of the same moment is beside it. "
                "The loss scale begins anew. Write mixtrain.BackupAndRestore in place of Keras's.",
                stacklevel=2,
            )

    def _moment(self) -> dict[str, int] | None:
        """Return the place in the run that Keras's files are of; None where there are none."""
        try:
            with open(self._metadata_file, encoding="utf-8") as file:
                return {f"keras_{name}": int(value) for name, value in json.load(file).items()}
        except (OSError, ValueError):
            return None
