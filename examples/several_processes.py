"""One network trained by several processes, each on its own shard of the data; an overflow on the last of them alone.

The first process starts the others on this machine, so that one line runs it. In each process the script is what a
launcher would start there: only the lines of `start` would be the launcher's.

    python examples/several_processes.py --processes 2
    KERAS_BACKEND=jax python examples/several_processes.py --processes 3
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import warnings


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        return int(connection.getsockname()[1])


def start(count: int, epochs: int) -> int:
    """Start the processes, each with the addresses of all; return 0 if all of them succeed."""
    ports = [free_port() for _ in range(count + 1)]
    workers = [f"127.0.0.1:{port}" for port in ports[1:]]
    running = []
    for rank in range(count):
        cluster = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        environment = {
            "TF_CONFIG": json.dumps(cluster),
            "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{ports[0]}",
            "JAX_NUM_PROCESSES": str(count),
            "JAX_PROCESS_ID": str(rank),
        }
        command = [sys.executable, __file__, "--epochs", str(epochs), "--worker"]
        running.append(subprocess.Popen(command, env=os.environ | environment))
    return max(abs(process.wait()) for process in running)


def train(epochs: int) -> None:
    """Train; every process runs this."""
    import numpy as np

    import mixtrain as ms
    import mixtrain.dataset as ds
    import mixtrain.nn as nn
    from mixtrain.communication import get_group_size, get_rank, init

    init()  # Before anything is computed.
    rank, size = get_rank(), get_group_size()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    ms.set_seed(0)

    draw = np.random.default_rng(0)
    x = draw.standard_normal((40 * 8 * size, 6)).astype(np.float32)
    labels = np.argmax(x @ draw.standard_normal((6, 3)), axis=-1).astype(np.int32)
    if rank == size - 1:
        x[7 * 8 * size + rank, 0] = np.inf  # A row of the shard of this process, in its eighth batch.
    data = ds.NumpySlicesDataset((x, labels), shuffle=False, num_shards=size, shard_id=rank).batch(8)

    net = nn.SequentialCell(nn.Dense(6, 32), nn.ReLU(), nn.Dense(32, 3))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    manager = ms.DynamicLossScaleManager(2**10, 2, 50)
    warnings.filterwarnings("ignore", "Model: in epoch .* steps were skipped although")
    history = ms.Model(net, loss, optimizer, loss_scale_manager=manager).train(epochs, data, verbose=0)
    losses = ", ".join(f"{value:.6f}" for value in history["loss"])
    line = f"rank {rank} of {size}: losses {losses}; {sum(history['skipped_steps'])} steps skipped\n"
    sys.stdout.write(line)  # In one piece: the processes share the output.


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.worker:
        return start(arguments.processes, arguments.epochs)
    train(arguments.epochs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
