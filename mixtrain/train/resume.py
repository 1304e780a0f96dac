"""Resuming a run from a checkpoint: all is checked first, then loaded, then told."""

from __future__ import annotations

import os

from mixtrain import checks
from mixtrain.serialization.checkpoint import Checkpoint, said
from mixtrain.serialization.into_net import load_param_into_net
from mixtrain.train.run_context import CallbackArguments


def resume_run(where: str, checkpoint: Checkpoint, arguments: CallbackArguments, verbose: bool) -> None:
    """Load a checkpoint into the train network of a run, and let the loop go on from its position.

    `where`: The caller, for errors. `checkpoint`: The checkpoint, as read. `arguments`: The state of the run; its
    "epochs_done" and "batches_done" are set. `verbose`: Whether a line says what was loaded.

    Raises: ValueError if the data has another number of batches than that of the checkpoint; nothing is changed.
    RuntimeError if the network is another one; nothing is changed.
    """
    facts = checkpoint.run_state.facts
    batches, saved = arguments.batch_num, facts.get("batch_num")
    if batches != saved:
        sizes = [f"{size} steps" if size else "an unknown number of steps" for size in (saved, batches)]
        raise checks.fail_value(
            where, f"to resume, an epoch must have {sizes[0]} as in {checkpoint.file!r}", sizes[1],
            "the dataset and the sink_size of that run",
        )
    if not saved and facts.get("epoch_step") is None:
        raise checks.fail_value(
            where, "to resume from data of unknown size, the file must have its position in the epoch",
            checkpoint.file, "a file that this version wrote, or a dataset with a length",
        )
    load_param_into_net(arguments.train_network, checkpoint)
    arguments.epochs_done, arguments.batches_done = checkpoint.position
    if verbose:
        print(f"{where}: goes on from {os.path.basename(checkpoint.file)}, {said(checkpoint.position)}", flush=True)
