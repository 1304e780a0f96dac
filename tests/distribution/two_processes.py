"""One of two processes that train together, as a script: each check's numbers go into a file that the tests read.

    python -m tests.distribution.two_processes RANK PORT FOLDER
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import warnings
from typing import Any


def join(rank: int, port: int) -> None:
    """Say in the environment where the two processes are, and join them."""
    workers = [f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}"]
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})
    os.environ["JAX_COORDINATOR_ADDRESS"] = f"127.0.0.1:{port + 2}"
    os.environ["JAX_NUM_PROCESSES"], os.environ["JAX_PROCESS_ID"] = "2", str(rank)


if __name__ == "__main__":
    join(int(sys.argv[1]), int(sys.argv[2]))

import keras
import numpy as np

import mixtrain as ms
from mixtrain import DynamicLossScaleManager, Model, ParallelMode, Tensor, backend, nn, ops
from mixtrain.communication import get_group_size, get_local_rank, get_local_rank_size, get_rank, init
from tests.distribution.networks import Records, batches, mlp, values_of

SIZE = 2


def shard(data: list[Any], rank: int) -> list[Any]:
    """Return a process's rows of batches."""
    return [tuple(column[rank * len(column) // SIZE : (rank + 1) * len(column) // SIZE] for column in row)
            for row in data]


def trained(data: Any, *more: keras.Layer, sink: bool = False, optimizer: Any = None, **options: Any) -> dict[str, Any]:
    """Train the classifier for one epoch; return what its steps reported, and its variables."""
    network = mlp(*more)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = Model(network, loss, optimizer or keras.optimizers.Adam(0.01), **options)
    records = Records()
    model.train(1, data, records, dataset_sink_mode=sink, verbose=0)
    found = {f"weight{place}": value for place, value in enumerate(values_of(network))}
    found |= {f"slot{place}": backend.to_numpy(value) for place, value in enumerate(model.train_network.driver.state_variables())}
    names = ("loss", "overflow", "loss_scale") if hasattr(model.train_network, "state") else ("loss",)
    return found | {name: records.column(name) for name in names}


def main(rank: int, folder: pathlib.Path) -> None:
    found: dict[str, Any] = {}
    init()
    found["ranks"] = np.array([get_rank(), get_group_size(), get_local_rank(), get_local_rank_size()])
    ms.set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True)
    for name, run in CHECKS.items():
        ms.set_seed(rank)  # Each begins elsewhere: the weights are those of rank 0.
        keras.utils.clear_session(free_memory=False)
        found |= {f"{name}/{key}": np.asarray(value) for key, value in run(rank).items()}
        print(name, flush=True)
    np.savez(folder / f"{rank}.npz", **found)


def o0(rank: int) -> dict[str, Any]:
    return trained(shard(batches(*[8] * 10), rank))


def o0_sink(rank: int) -> dict[str, Any]:
    return trained(shard(batches(*[8] * 10), rank), sink=True)


def collectives(rank: int) -> dict[str, Any]:
    x = Tensor(np.array([[1.0 + rank, 2], [3, -4]], np.float32))
    found = {op: ops.AllReduce(op)(x).asnumpy() for op in ("sum", "max", "min", "prod")}
    found["gather"] = ops.AllGather()(x).asnumpy()
    found["scatter"] = ops.ReduceScatter()(x).asnumpy()
    found["broadcast"] = ops.Broadcast(1)((x,))[0].asnumpy()
    found["zeros"] = ops.Broadcast(1)((Tensor(np.array([-0.0, 0.0], np.float32)),))[0].asnumpy()
    return found


CHECKS = {"collectives": collectives, "o0": o0, "o0_sink": o0_sink}

if __name__ == "__main__":
    warnings.filterwarnings("ignore", "Model: in epoch .* steps were skipped although")
    main(int(sys.argv[1]), pathlib.Path(sys.argv[3]))
