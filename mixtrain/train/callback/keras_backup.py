"""The state of a Keras network's run that Keras's `BackupAndRestore` does not save, in a file next to its own."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import keras

from mixtrain.serialization.files import finish_writing
from mixtrain.serialization.into_net import load_param_into_net
from mixtrain.serialization.read import read_checkpoint
from mixtrain.serialization.save import write_checkpoint
from mixtrain.train.callback.checkpoint_files import run_position
from mixtrain.train.run_context import CallbackArguments

_FILE = "mixtrain.ckpt"


class CompanionBackup:
    """The loss scale, random states and mixtrain's optimizer, in ``mixtrain.ckpt`` in the folder of Keras's backup."""

    def __init__(self, callback: keras.callbacks.BackupAndRestore) -> None:
        folder = os.fspath(callback.backup_dir)
        self._metadata_file = os.path.join(folder, "training_metadata.json")
        self._path = os.path.join(folder, _FILE)
        self._written: Any = None

    def save(self, arguments: CallbackArguments) -> None:
        """Write the file, if Keras has just written its own."""
        metadata = self._metadata()
        if metadata is None or metadata == self._written:
            return
        position = run_position(arguments) | metadata
        write_checkpoint(arguments.train_network, self._path, False, None, position=position)
        finish_writing()
        self._written = metadata

    def restore(self, arguments: CallbackArguments) -> None:
        """Restore the state from the file, if Keras has just restored its own."""
        self._written = metadata = self._metadata()
        if metadata is None:
            return
        if os.path.isfile(self._path):
            checkpoint = read_checkpoint(self._path)
            # A file of another step would not match the parameters that Keras restored.
            if {name: checkpoint.run_state.facts.get(name) for name in metadata} == metadata:
                load_param_into_net(arguments.train_network, checkpoint)
                return
        if arguments.get("loss_scale_manager") is not None:
            warnings.warn(
                f"BackupAndRestore: Keras's file holds no loss scale, and no {_FILE} of the same moment is beside it. "
                "The loss scale begins anew. Write mixtrain.BackupAndRestore in place of Keras's.",
                stacklevel=2,
            )

    def _metadata(self) -> dict[str, int] | None:
        """Return the position in the run at which Keras wrote its files; None if there are none."""
        try:
            with open(self._metadata_file, encoding="utf-8") as file:
                return {f"keras_{name}": int(value) for name, value in json.load(file).items()}
        except (OSError, ValueError):
            return None
