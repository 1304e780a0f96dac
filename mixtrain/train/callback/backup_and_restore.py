"""`BackupAndRestore`: keeps a checkpoint from which an interrupted run resumes."""

from __future__ import annotations

import os
from typing import Literal

from mixtrain import checks
from mixtrain.serialization.checkpoint import said
from mixtrain.serialization.files import finish_writing
from mixtrain.serialization.into_net import load_param_into_net
from mixtrain.serialization.parts import remove_checkpoint
from mixtrain.serialization.read import read_checkpoint
from mixtrain.serialization.save import write_checkpoint
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.checkpoint_files import make_folder, run_position
from mixtrain.train.run_context import RunContext

_WHERE = "BackupAndRestore"


class BackupAndRestore(Callback):
    """Writes ``backup.ckpt`` at the end of epochs; a run that finds the file resumes after the epoch it was written in.

    The file holds all that a resumed run needs: parameters, the optimizer, loss-scale counts, random states. (MindSpore
    restores only parameters and starts again with the first epoch.)

    Args:
        backup_dir: The folder of the file, created if it is missing.
        save_freq: "epoch", or the number of epochs between writes.
        delete_checkpoint: Whether the file is removed at the end of training.

    Raises: TypeError if an argument has the wrong type. ValueError if `save_freq` is another string, or less than 1.

    Example: ``BackupAndRestore("./backup")``.
    """

    def __init__(
        self, backup_dir: str | os.PathLike[str], save_freq: Literal["epoch"] | int = "epoch",
        delete_checkpoint: bool = True,
    ) -> None:
        super().__init__()
        if backup_dir is None:
            raise checks.fail_type(_WHERE, "backup_dir must be a str", backup_dir, 'backup_dir="./backup"')
        if isinstance(save_freq, str):
            checks.one_of(_WHERE, "save_freq", save_freq, ("epoch",))
            self.save_freq = 1
        else:
            self.save_freq = checks.integer(_WHERE, "save_freq", save_freq, at_least=1)
        self.delete_checkpoint = checks.boolean(_WHERE, "delete_checkpoint", delete_checkpoint)
        self.backup_file = os.path.join(make_folder(_WHERE, backup_dir), "backup.ckpt")

    def on_train_begin(self, run_context: RunContext) -> None:
        """Load the file, if there is one, and let the loop resume after its epoch."""
        arguments = run_context.original_args()
        if arguments.get("epochs_done") is None and os.path.exists(self.backup_file):
            checkpoint = read_checkpoint(self.backup_file)
            load_param_into_net(arguments.train_network, checkpoint)
            arguments.epochs_done = checkpoint.epoch or 0
            print(f"{_WHERE}: goes on from backup.ckpt, {said((arguments.epochs_done, 0))}", flush=True)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Write the file, if it is due."""
        arguments = run_context.original_args()
        if arguments.cur_epoch_num % self.save_freq == 0:
            position = run_position(arguments)
            write_checkpoint(arguments.train_network, self.backup_file, False, None, position=position)

    def on_train_end(self, run_context: RunContext) -> None:
        """Remove the file, if requested."""
        finish_writing()
        if self.delete_checkpoint:
            remove_checkpoint(self.backup_file)
