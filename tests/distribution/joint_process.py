"""One of two processes whose two devices each are one mesh, as a script: each check's numbers go into a file.

    python -m tests.distribution.joint_process RANK PORT,PORT,PORT FOLDER
"""

from __future__ import annotations

import functools
import pathlib
import sys
from typing import Any

import jax
import keras
import numpy as np

import mixtrain as ms
from mixtrain import DynamicLossScaleManager, Model
from mixtrain.distribution import fully_sharded
from mixtrain.serialization import parts, save
from tests.distribution.networks import Records, batches, mlp, values_of
from tests.distribution.two_processes import join, shard

FOLDER = pathlib.Path(sys.argv[3] if __name__ == "__main__" else "")
FAULTY = 3


def data(rows: int = 8) -> list[Any]:
    """Return joint batches, one of which overflows in its last row alone."""
    result = batches(*[rows] * 6)
    result[FAULTY][0][rows - 1, 0] = np.inf
    return result


def model(*, seed: int = 0, distribution: Any = None, **options: Any) -> Model:
    keras.utils.set_random_seed(seed)
    with distribution.scope() if distribution is not None else keras.name_scope("one"):
        options.setdefault("loss_scale_manager", DynamicLossScaleManager(1024, 2, 3))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return Model(mlp(), loss, keras.optimizers.Adam(0.01), metrics=["accuracy"], **options)


def trained(made: Model, rows: list[Any], *callbacks: Any, epochs: int = 2, **options: Any) -> dict[str, Any]:
    records = Records()
    made.train(epochs, rows, [records, *callbacks], verbose=0, **options)
    result = {f"weight{place}": value for place, value in enumerate(values_of(made.predict_network))}
    return result | {name: records.column(name) for name in ("loss", "overflow", "loss_scale")}


def error_of(run: Any) -> dict[str, Any]:
    try:
        run()
    except (TypeError, ValueError) as error:
        return {"error": str(error)}
    return {"error": ""}


def compared(rank: int, distribution: Any, *, rows: int = 8, **options: Any) -> dict[str, Any]:
    made = model(distribution=distribution, **options)
    result = trained(made, shard(data(rows), rank))
    good = shard(batches(8, 8), rank)
    values = made.eval(good)
    result["evaluated"] = [values[name] for name in ("loss", "accuracy")]
    return result | {"predicted": made.predict(good[0][0])}


def named(rank: int) -> dict[str, Any]:
    monitor = ms.OverflowMonitor(verbose=False)
    trained(model(distribution=fully_sharded(), amp_level="O2"), shard(data(), rank), monitor, epochs=1)
    findings = [row.finding for row in monitor.records]
    return {"found": [f"{found.kind} {found.layer} {found.scale}" for found in findings]}


def differing(rank: int) -> dict[str, Any]:
    """JAX refuses weights that differ."""
    try:
        model(seed=rank, distribution=keras.distribution.DataParallel())
    except AssertionError as error:
        return {"error": str(error)}
    return {"error": ""}


def saved(rank: int) -> dict[str, Any]:
    """Train with a file each two steps, then go on from the last of them in another Model."""
    folder = FOLDER / "joint"
    for seconds in (None, 3600):
        config = ms.CheckpointConfig(save_checkpoint_steps=0 if seconds else 2, save_checkpoint_seconds=seconds)
        files = ms.ModelCheckpoint("run", str(folder / str(seconds)), config)
        whole = trained(model(distribution=fully_sharded()), shard(data(), rank), files, epochs=1)
    resumed = trained(model(seed=5, distribution=fully_sharded()), shard(data(), rank), resume=folder / "None")
    return whole | {f"resumed {name}": value for name, value in resumed.items()}


def in_parts(rank: int) -> dict[str, Any]:
    """As `saved`, where each process writes the pieces of the weights that it holds; the last two files are kept."""
    save.IN_PARTS_FROM = 0  # type: ignore[misc]
    folder = FOLDER / "parts"
    config = ms.CheckpointConfig(save_checkpoint_steps=2, keep_checkpoint_max=2)
    made = model(distribution=fully_sharded(), amp_level="O3")
    whole = trained(made, shard(data(), rank), ms.ModelCheckpoint("run", str(folder), config), epochs=1)
    ms.save_checkpoint(made.train_network, str(FOLDER / "again.ckpt"))
    ms.save_checkpoint(made.train_network, str(FOLDER / "again.ckpt"))
    resumed = trained(
        model(seed=5, distribution=fully_sharded(), amp_level="O3"), shard(data(), rank), resume=folder
    )
    # The folder of the other process is missing: both say so, and the file before stays whole.
    error = ""
    try:
        ms.save_checkpoint(made.train_network, str(FOLDER / ("again.ckpt" if rank else "missing/again.ckpt")))
    except OSError as failure:
        error = str(failure)
    save.IN_PARTS_FROM = parts.IN_PARTS_FROM  # type: ignore[misc]
    return whole | {f"resumed {name}": value for name, value in resumed.items()} | {"error": error}


def alone(rank: int, what: str) -> dict[str, Any]:
    """Return the error of what one process may not do alone."""
    rows = shard(data(), rank)
    distribution = fully_sharded()
    made = model(distribution=distribution)
    if what == "sink":
        return error_of(lambda: made.train(1, rows, dataset_sink_mode=True, verbose=0))
    if what == "callbacks":
        files = [ms.ModelCheckpoint("run", str(FOLDER / "alone"))] if rank == 0 else []
        return error_of(lambda: made.train(1, rows, files, verbose=0))
    if what == "exception_save":
        config = ms.CheckpointConfig(exception_save=True)
        files = [ms.ModelCheckpoint("run", str(FOLDER / "alone"), config)]
        return error_of(lambda: made.train(1, rows, files, verbose=0))
    if what == "exit":
        return error_of(lambda: made.train(1, rows, ms.OnRequestExit(directory=str(FOLDER / "exit")), verbose=0))
    if what == "eager":
        ms.set_context(mode=ms.PYNATIVE_MODE)
        error = error_of(lambda: made.train(1, rows, verbose=0))
        ms.set_context(mode=ms.GRAPH_MODE)
        return error
    if what == "check":
        return error_of(lambda: made.check(rows))
    # The first batches are alike, then one process has fewer rows, or ends.
    fewer = [*rows[:2], tuple(column[:2] for column in rows[2])] if what == "rows" else rows[:2]
    own = iter_again(rows[:3] if rank else fewer)
    return error_of(lambda: made.train(1, own, verbose=0))


class iter_again:
    """Batches of unknown number."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def __iter__(self) -> Any:
        return iter(self.rows)


ALONE = ("sink", "callbacks", "exception_save", "exit", "eager", "check", "rows", "batches")
CHECKS: dict[str, Any] = {
    "sharded": lambda rank: compared(rank, fully_sharded()),
    "replicas": lambda rank: compared(rank, keras.distribution.DataParallel()),
    "half": lambda rank: compared(rank, fully_sharded(), amp_level="O2"),
    "copies": lambda rank: compared(rank, fully_sharded(), amp_level="O3"),
    "accumulated": lambda rank: compared(rank, fully_sharded(), accumulate_steps=2),
    "indivisible": lambda rank: compared(rank, fully_sharded(), rows=6),
    "differing": differing,
    "named": named,
    "saved": saved,
    "in parts": in_parts,
    **{f"alone {what}": functools.partial(alone, what=what) for what in ALONE},
}


def main(rank: int) -> None:
    result: dict[str, Any] = {}
    for name, run in CHECKS.items():
        keras.utils.clear_session(free_memory=False)
        result |= {f"{name}/{key}": np.asarray(value) for key, value in run(rank).items()}
        print(name, flush=True)
    np.savez(FOLDER / f"{rank}.npz", **result)
    print("ended", flush=True)


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 2)
    join(int(sys.argv[1]), sys.argv[2])
    main(int(sys.argv[1]))
