"""One of two processes that train together and write checkpoints, as a script; one of them may die on the way.

    python -m tests.distribution.dying_process RANK PORT,PORT,PORT FOLDER WAY [DYING_RANK DYING_STEP MILLISECONDS]

WAY is "replicas", or "mesh": the weights are divided over both, and each process writes its pieces of them.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import signal
import sys
import threading
import time
from typing import Any

import keras
import numpy as np

import mixtrain as ms
from mixtrain import Model, ParallelMode
from mixtrain.communication import get_rank
from mixtrain.distribution import fully_sharded
from mixtrain.serialization import save
from tests.distribution.networks import batches, mlp, values_of
from tests.distribution.two_processes import join, shard

EPOCHS, STEPS = 3, 8


class Dies(ms.Callback):
    """Kills this process some time after the end of a step: in a later step, or while it writes a checkpoint."""

    observes_only = True

    def __init__(self, step: int, milliseconds: int) -> None:
        super().__init__()
        self.step, self.milliseconds = step, milliseconds

    def on_train_step_end(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == self.step:
            threading.Timer(self.milliseconds / 1000, os.kill, (os.getpid(), signal.SIGKILL)).start()


class Tells(ms.Callback):
    """Tells on standard output that a step has ended, and when."""

    observes_only = True

    def on_train_step_end(self, run_context: Any) -> None:
        print("step", run_context.original_args().cur_step_num, time.time(), flush=True)


def main(folder: pathlib.Path, way: str, dies: list[int]) -> None:
    ms.set_seed(0)
    if way == "mesh":
        save.IN_PARTS_FROM = 0  # type: ignore[misc]
        keras.distribution.set_distribution(fully_sharded())
    else:
        ms.set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True)
    network = mlp(keras.layers.Dropout(0.2, seed=3))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = Model(network, loss, keras.optimizers.Adam(0.01))
    callbacks: list[Any] = [Tells()]
    if get_rank() == 0 or way == "mesh":
        config = ms.CheckpointConfig(save_checkpoint_steps=3, keep_checkpoint_max=2)
        callbacks.append(ms.ModelCheckpoint("run", str(folder / "checkpoints"), config))
    if dies:
        callbacks.append(Dies(*dies))
    data = shard(batches(*[8] * STEPS), get_rank())
    model.train(EPOCHS, data, callbacks, verbose=0, resume=folder / "checkpoints")
    np.savez(folder / f"{get_rank()}.npz", *values_of(network))


if __name__ == "__main__":
    rank, way = int(sys.argv[1]), sys.argv[4]
    if way == "mesh":
        importlib.import_module("jax").config.update("jax_num_cpu_devices", 2)
    join(rank, sys.argv[2])
    doomed = len(sys.argv) > 5 and int(sys.argv[5]) == rank
    main(pathlib.Path(sys.argv[3]), way, [*map(int, sys.argv[6:])] if doomed else [])
