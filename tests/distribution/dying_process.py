"""One of two processes that train together and write checkpoints, as a script; one of them may die on the way.

    python -m tests.distribution.dying_process RANK PORT,PORT,PORT FOLDER [DYING_RANK DYING_STEP]
"""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import time
from typing import Any

import keras
import numpy as np

import mixtrain as ms
from mixtrain import Model, ParallelMode
from mixtrain.communication import get_rank
from tests.distribution.networks import batches, mlp, values_of
from tests.distribution.two_processes import join, shard

EPOCHS, STEPS = 3, 8


class Dies(ms.Callback):
    """Kills this process at the end of a step."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def on_train_step_end(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


class Tells(ms.Callback):
    """Tells on standard output that a step has ended, and when."""

    def on_train_step_end(self, run_context: Any) -> None:
        print("step", run_context.original_args().cur_step_num, time.time(), flush=True)


def main(folder: pathlib.Path, dies: int | None) -> None:
    ms.set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True)
    ms.set_seed(0)
    network = mlp(keras.layers.Dropout(0.2, seed=3))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = Model(network, loss, keras.optimizers.Adam(0.01))
    callbacks: list[Any] = [Tells()]
    if get_rank() == 0:
        config = ms.CheckpointConfig(save_checkpoint_steps=3, keep_checkpoint_max=2)
        callbacks.append(ms.ModelCheckpoint("run", str(folder / "checkpoints"), config))
    if dies is not None:
        callbacks.append(Dies(dies))
    data = shard(batches(*[8] * STEPS), get_rank())
    model.train(EPOCHS, data, callbacks, verbose=0, resume=folder / "checkpoints")
    np.savez(folder / f"{get_rank()}.npz", *values_of(network))


if __name__ == "__main__":
    rank = int(sys.argv[1])
    join(rank, sys.argv[2])
    doomed = len(sys.argv) > 4 and int(sys.argv[4]) == rank
    main(pathlib.Path(sys.argv[3]), int(sys.argv[5]) if doomed else None)
