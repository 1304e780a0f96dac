"""Measure the cost of data parallelism in two processes of one machine: steps with and without gradient reduction.

    python -m benchmarks.two_processes
    KERAS_BACKEND=jax python -m benchmarks.two_processes --print-only
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import keras
import numpy as np

from benchmarks.call_pairs import BACKENDS
from benchmarks.measure import Series, interleaved
from benchmarks.surroundings import RunStart, versions
from benchmarks.table import PAGE, line, publish, short, surroundings_line
from benchmarks.written import rounded
from mixtrain import Model, ParallelMode, Tensor, communication, nn, ops, set_auto_parallel_context, set_seed
from mixtrain.dataset import NumpySlicesDataset

NAMES: Final = tuple(f"two_processes_{backend}" for backend in BACKENDS)
SCALING: Final = PAGE.parent / "scaling.md"
STEPS: Final = 10
_BATCH: Final = 256
_SIZES: Final = (1, 25_000, 250_000, 2_500_000)
_CALLS: Final = 30


def _epoch(mode: str) -> tuple[Callable[[], float], int]:
    """Return a function that trains an epoch and returns its milliseconds per step, and the bytes of weights."""
    set_auto_parallel_context(parallel_mode=mode, gradients_mean=True)
    set_seed(0)
    network = nn.SequentialCell(nn.Dense(784, 1024), nn.ReLU(), nn.Dense(1024, 512), nn.ReLU(), nn.Dense(512, 10))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(network, loss, nn.Adam(network.trainable_params(), 1e-3))
    random = np.random.default_rng(communication.get_rank())
    rows = STEPS * _BATCH
    columns = random.standard_normal((rows, 784)).astype(np.float32), random.integers(0, 10, rows).astype(np.int32)
    data = NumpySlicesDataset(columns, shuffle=False).batch(_BATCH)

    def run() -> float:
        ops.AllReduce()(Tensor(0.0)).asnumpy()  # A barrier: both processes start together.
        started = time.perf_counter()
        model.train(1, data, dataset_sink_mode=True, verbose=0)
        return 1e3 * (time.perf_counter() - started) / STEPS

    return run, 4 * sum(parameter.size for parameter in network.trainable_params())


def _reduction(size: int) -> float:
    """Return the median milliseconds of an all-reduce of `size` float32 values."""
    value, all_reduce = Tensor(np.ones(size, np.float32)), ops.AllReduce()
    times = []
    for _ in range(_CALLS):
        started = time.perf_counter()
        all_reduce(value).asnumpy()
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times)


def measured(rounds: int) -> dict[str, Any]:
    """Return the record of one of the two processes."""
    start = RunStart()
    communication.init()
    reductions = {4 * size: _reduction(size) for size in _SIZES}
    alone, _ = _epoch(ParallelMode.STAND_ALONE)
    together, size = _epoch(ParallelMode.DATA_PARALLEL)
    runs = {"alone": alone, "together": together}
    for run in [*runs.values()] * 2:
        run()
    values = interleaved(runs, rounds=rounds)
    shares = [1 - alone_ms / ms for alone_ms, ms in zip(values["alone"], values["together"], strict=True)]
    steps = {name: Series(name, "ms per step", tuple(value)).quartiles for name, value in values.items()}
    return rounded({  # type: ignore[no-any-return]
        **start.metadata(f"two_processes_{keras.backend.backend()}", versions()),
        "rounds": rounds, "bytes": size, "reductions": reductions, "steps": steps,
        "share": Series("share", "", tuple(shares)).quartiles,
    })


def as_text(record: Mapping[str, Any]) -> str:
    """Format a record as Markdown."""
    reductions = [line(["all-reduce of", "ms"]), "|---|---|"]
    reductions += [line([f"{int(size):,} bytes", short(value)]) for size, value in record["reductions"].items()]
    steps = [line(["step, ms", "median", "quartiles"]), "|---|---|---|"]
    for name, (low, middle, high) in record["steps"].items():
        steps.append(line([f"each {name}", short(middle), f"{short(low)} to {short(high)}"]))
    low, middle, high = record["share"]
    (_, latency), *_, (largest, slowest) = ((int(size), ms) for size, ms in record["reductions"].items())
    bandwidth = largest / (slowest - latency)
    summary = (
        f"A step of a dense network (P = {record['bytes']:,} bytes), batch {_BATCH} a process, Adam, O0, sink feed, in "
        f"{record['rounds']} rounds of {STEPS} steps. Each process sends and receives 2 P (n - 1) / n = "
        f"{record['bytes']:,} bytes a step. The reductions took {middle:.0%} of it ({low:.0%} to {high:.0%}): "
        f"{short(record['steps']['together'][1] - record['steps']['alone'][1])} ms. L + 2 P (n - 1) / (n B), with L "
        f"and B = {short(bandwidth / 1000)} MB a second from the table, is "
        f"{short(latency + record['bytes'] / bandwidth)} ms."
    )
    return "\n\n".join([surroundings_line(record), "\n".join(reductions), summary, "\n".join(steps)])


def _ports() -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [int(sock.getsockname()[1]) for sock in sockets]


def in_two_processes(rounds: int) -> dict[str, Any]:
    """Start both processes; return the record of the first.

    Raises:
        RuntimeError: One of them failed.
    """
    coordinator, *workers = [f"127.0.0.1:{port}" for port in _ports()]
    with tempfile.TemporaryDirectory() as folder:
        file, processes = pathlib.Path(folder) / "record.json", []
        for rank in (0, 1):
            cluster = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
            variables = {
                "TF_CONFIG": json.dumps(cluster), "JAX_COORDINATOR_ADDRESS": coordinator, "JAX_NUM_PROCESSES": "2",
                "JAX_PROCESS_ID": str(rank),
            }
            command = [sys.executable, "-m", "benchmarks.two_processes", "--rounds", str(rounds), "--worker", str(file)]
            processes.append(subprocess.Popen(command, env=os.environ | variables))
        if any([process.wait() for process in processes]):
            raise RuntimeError("two_processes: both processes must end well. Look at what they printed.")
        return json.loads(file.read_text())  # type: ignore[no-any-return]


def main() -> None:
    """Measure, and write the record and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    parser.add_argument("--worker", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        record = measured(options.rounds)
        if communication.get_rank() == 0:
            options.worker.write_text(json.dumps(record))
        return
    record = in_two_processes(options.rounds)
    publish(record, as_text(record), print_only=options.print_only, page=SCALING)


if __name__ == "__main__":
    main()
