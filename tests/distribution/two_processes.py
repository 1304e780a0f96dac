"""One of two processes that train together, as a script: each check's numbers go into a file that the tests read.

    python -m tests.distribution.two_processes RANK PORT,PORT,PORT FOLDER [CHECK ...]
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import sys
import warnings
from typing import Any

import keras
import numpy as np

import mixtrain as ms
from mixtrain import DynamicLossScaleManager, Model, ParallelMode, Tensor, backend, nn, ops
from mixtrain.communication import get_group_size, get_local_rank, get_local_rank_size, get_rank, init
from mixtrain.distribution import data_parallel
from tests.distribution.compiled import reduced, train_cell
from tests.distribution.networks import Records, batches, cnn, images, mlp, values_of
from tests.train.skip_cases import PLANTED, Plants

SIZE = 2
# Where files are written; the tests' import has none.
FOLDER = pathlib.Path(sys.argv[3] if __name__ == "__main__" else "")


def shard(data: list[Any], rank: int) -> list[Any]:
    """Return a process's rows of batches."""
    return [tuple(column[rank * len(column) // SIZE : (rank + 1) * len(column) // SIZE] for column in row)
            for row in data]


def trained(
    data: Any, *more: keras.Layer, sink: bool = False, optimizer: Any = None, network: Any = mlp, **options: Any
) -> dict[str, Any]:
    """Train the classifier for one epoch; return what its steps reported, and its variables."""
    made = network(*more)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = Model(made, loss, optimizer or keras.optimizers.Adam(0.01), **options)
    records = Records()
    model.train(1, data, records, dataset_sink_mode=sink, verbose=0)
    result = {f"weight{place}": value for place, value in enumerate(values_of(made))}
    slots = model.train_network.driver.state_variables()
    result |= {f"slot{place}": backend.to_numpy(value) for place, value in enumerate(slots)}
    names = ("loss", "overflow", "loss_scale") if hasattr(model.train_network, "state") else ("loss",)
    return result | {name: records.column(name) for name in names}


def join(rank: int, ports: str) -> None:
    """Say in the environment where the two processes are, and join them."""
    *workers, coordinator = [f"127.0.0.1:{port}" for port in ports.split(",")]
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})
    os.environ["JAX_COORDINATOR_ADDRESS"] = coordinator
    os.environ["JAX_NUM_PROCESSES"], os.environ["JAX_PROCESS_ID"] = "2", str(rank)
    init()


def main(rank: int, folder: pathlib.Path) -> None:
    result: dict[str, Any] = {}
    result["ranks"] = np.array([get_rank(), get_group_size(), get_local_rank(), get_local_rank_size()])
    ms.set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True)
    only = sys.argv[4:] or CHECKS
    for name, run in ((name, CHECKS[name]) for name in only):
        ms.set_seed(rank)  # Each begins elsewhere: the weights are those of rank 0.
        keras.utils.clear_session(free_memory=False)
        result |= {f"{name}/{key}": np.asarray(value) for key, value in run(rank).items()}
        print(name, flush=True)
    np.savez(folder / f"{rank}.npz", **result)


def collectives(rank: int) -> dict[str, Any]:
    x = Tensor(np.array([[1.0 + rank, 2], [3, -4]], np.float32))
    result = {op: ops.AllReduce(op)(x).asnumpy() for op in ("sum", "max", "min", "prod")}
    result["gather"] = ops.AllGather()(x).asnumpy()
    result["scatter"] = ops.ReduceScatter()(x).asnumpy()
    result["broadcast"] = ops.Broadcast(1)((x, Tensor(np.array([-0.0, 0.0], np.float32) * (1 - 2 * rank))))[1].asnumpy()
    # The gradient of what is added up comes from all processes.
    result["gradient"] = ms.grad(lambda x: (ops.AllReduce()(x * x) * (1 + rank)).sum())(x).asnumpy()
    return result


def settings(rank: int) -> dict[str, Any]:
    errors = []
    for wrong in (
        lambda: ms.set_auto_parallel_context(device_num=4),
        lambda: ops.Broadcast(2),
        lambda: ops.ReduceScatter()(Tensor(np.ones(3, np.float32))),
        lambda: nn.DistributedGradReducer([], degree=4),
        lambda: trained(shard(batches(*[8] * (2 + rank)), rank)),
    ):
        try:
            wrong()
        except ValueError as error:
            errors.append(str(error))
    return {"errors": errors, "device_num": ms.get_auto_parallel_context("device_num")}


def o0(rank: int, **options: Any) -> dict[str, Any]:
    return trained(shard(batches(*[8] * 50), rank), **options)


def every_size(rank: int) -> dict[str, Any]:
    """Train on batches of 2 to 5 rows of which the processes have unequal parts; evaluate on them."""
    network = mlp()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model, records = Model(network, loss, keras.optimizers.Adam(0.01), metrics={"accuracy"}), Records()
    rows = [slice(0, 1) if rank == 0 else slice(1, None)] * 4
    data = [tuple(column[part] for column in row) for row, part in zip(batches(2, 3, 4, 5), rows, strict=True)]
    model.train(1, data, records, verbose=0)
    return {"loss": records.column("loss")} | {f"w{place}": value for place, value in enumerate(values_of(network))}


def half(rank: int) -> dict[str, Any]:
    with data_parallel(1, reduce_dtype="bfloat16"):
        return trained(shard(batches(*[8] * 5), rank), loss_scale_manager=DynamicLossScaleManager(2**10, 2, 100))


def unequal_rows(rank: int) -> dict[str, Any]:
    return trained([tuple(column[:5] if rank == 0 else column[5:] for column in row) for row in batches(*[8] * 5)])


def with_faults(rank: int, *, left_out: bool, faulty: int = 1, planted: bool = False) -> list[Any]:
    """Return a shard of which a process overflows alone; or without those batches."""
    data = shard(batches(*[8] * 12), rank)
    faults = FAULTS | (IN_LAYERS if planted else {})
    for place, value in faults.items():
        if rank == faulty:
            data[place][0][2, 1 if place in IN_LAYERS else slice(None)] = value
    return [row for place, row in enumerate(data) if not (left_out and place in faults)]


# By the number of the batch, at its input; and what `Plants` makes so in a layer, and in its gradient alone.
FAULTS = {2: np.inf, 3: np.nan, 7: -np.inf}
IN_LAYERS = {5: PLANTED["forward"], 8: PLANTED["gradient"]}


def state_after(model: Any) -> dict[str, Any]:
    """Return all that a skipped step must leave alone."""
    train = model.train_network
    variables = [*train.weights, *train.network_state(), *train.driver.state_variables()]
    return {f"state{place}": backend.to_numpy(variable) for place, variable in enumerate(variables)}


def skips(rank: int, *, left_out: bool, sink: bool = False, eager: bool = False, faulty: int = 1) -> dict[str, Any]:
    layers = keras.layers
    more = [Plants(), layers.BatchNormalization(), layers.Dropout(0.5, seed=3), layers.Dense(3)]
    network = keras.Sequential([keras.Input((6,)), layers.Dense(16), *more])
    ms.set_context(mode=ms.PYNATIVE_MODE if eager else ms.GRAPH_MODE)
    model = Model(
        network, keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.optimizers.Adam(0.01),
        amp_level="O0" if eager else "O2", loss_scale_manager=ms.FixedLossScaleManager(2**10), metrics={"accuracy"},
    )
    data = with_faults(rank, left_out=left_out, faulty=faulty, planted=True)
    history = model.train(1, data, dataset_sink_mode=sink, verbose=0)
    ms.set_context(mode=ms.GRAPH_MODE)
    return state_after(model) | {"skipped": history["skipped_steps"], "accuracy": history["accuracy"]}


def scales(rank: int) -> dict[str, Any]:
    manager = DynamicLossScaleManager(2**10, 2, 3)
    return trained(with_faults(rank, left_out=False), amp_level="O2", loss_scale_manager=manager)


# Ways to store weights in half.
STORAGES: dict[str, dict[str, Any]] = {
    "copies": {"master_weights": True},
    **{update: {"master_weights": False, "low_precision_update": update} for update in ("stochastic", "compensated")},
}


def weights_in_half(storage: str, rank: int) -> dict[str, Any]:
    half = {"amp_level": "O2", "cast_model_type": "bfloat16", **STORAGES[storage]}
    return trained(shard(batches(*[8] * 12), rank), **half)


class OwnStep(nn.TrainOneStepWithLossScaleCell):
    """MindSpore's train step, written by a user."""

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        status, scale = self.start_overflow_check(loss, self.scale_sense)
        scaled = ops.ones_like(loss) * ops.cast(scale, loss.dtype)
        grads = self.grad(self.network, self.weights)(*inputs, scaled)
        grads = ms.ops.HyperMap()(ms.ops.Partial()(_unscaled, scale), grads)
        grads = self.grad_reducer(grads)
        overflow = self.process_loss_scale(self.get_overflow_status(status, grads))
        if not overflow:
            self.optimizer(grads)
        return loss, overflow, scale


def _unscaled(scale: Any, gradient: Any) -> Any:
    return gradient / ops.cast(scale, gradient.dtype)


class StopsAt(ms.Callback):
    """Asks for the end of the run at a step; `observes_only` if it needs no control."""

    def __init__(self, step: int, observes_only: bool = False) -> None:
        super().__init__()
        self.step, self.observes_only = step, observes_only  # type: ignore[misc]

    def on_train_step_end(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == self.step:
            run_context.request_stop()


def stopped(rank: int) -> dict[str, Any]:
    """Train two epochs of six steps that the second process ends; return how many steps were trained."""
    result = {}
    for name, callback in (
        ("at a step", StopsAt(3)), ("after an epoch", StopsAt(3, observes_only=True)), ("never", StopsAt(99)),
    ):
        net, loss, optimizer = cells()
        records = Records()
        callbacks = [records, callback] if rank == 1 else records
        Model(net, loss, optimizer).train(2, shard(batches(*[8] * 6), rank), callbacks, verbose=0)
        result[name] = len(records.column("loss"))
    return result


def other_rates(rank: int) -> dict[str, Any]:
    net, loss, optimizer = cells()
    scheduler = ms.LearningRateScheduler(lambda rate, step: rate / (1 + rank))
    try:
        Model(net, loss, optimizer).train(2, shard(batches(8, 8), rank), scheduler, verbose=0)
    except ValueError as error:
        return {"error": str(error)}
    return {"error": ""}


def interrupted(rank: int) -> dict[str, Any]:
    """Train an epoch of a run that one process goes on with."""
    model = to_be_resumed()
    model.train(1, shard(batches(*[8] * 6), rank), checkpoints(FOLDER) if rank == 0 else None, verbose=0)
    return {}


def to_be_resumed() -> Model:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return Model(mlp(), loss, keras.optimizers.Adam(0.01), loss_scale_manager=DynamicLossScaleManager(2**10, 2, 4))


def checkpoints(folder: pathlib.Path) -> ms.Callback:
    return ms.ModelCheckpoint("run", str(folder / "checkpoints"), ms.CheckpointConfig(save_checkpoint_steps=6))


def cells() -> tuple[Any, Any, Any]:
    """Return a network of Cells with weights of its process, its loss, and its optimizer."""
    net = nn.SequentialCell(nn.Dense(6, 16), nn.Tanh(), nn.Dense(16, 3))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return net, loss, nn.Momentum(net.trainable_params(), 0.05, 0.9)


def own_train_cell(rank: int) -> dict[str, Any]:
    net, loss, optimizer = cells()
    scale = nn.DynamicLossScaleUpdateCell(2**10, 2, 3)
    step = OwnStep(nn.WithLossCell(net, loss), optimizer, scale).set_train()
    data = with_faults(rank, left_out=False)
    overflows = [bool(step(Tensor(x), Tensor(y))[1].asnumpy()) for x, y in data]
    return {"overflows": overflows} | {f"w{i}": w.asnumpy() for i, w in enumerate(net.trainable_params())}


def by_hand(rank: int, *, compiled: bool) -> dict[str, Any]:
    net, loss, optimizer = cells()
    for weight in net.trainable_params():
        weight.set_data(ops.Broadcast(0)((weight,))[0])
    reducer = nn.DistributedGradReducer(optimizer.parameters)
    value_and_grad = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

    def step(x: Any, y: Any) -> Any:
        value, grads = value_and_grad(x, y)
        optimizer(reducer(grads))
        return value

    run = ms.jit(step) if compiled else step
    losses = [float(run(Tensor(x), Tensor(y))) for x, y in shard(batches(*[8] * 10), rank)]
    return {"losses": losses} | {f"w{i}": w.asnumpy() for i, w in enumerate(net.trainable_params())}


def of_cells(rank: int) -> dict[str, Any]:
    net, loss, optimizer = cells()
    rows = [np.concatenate(column) for column in zip(*batches(*[8] * 10), strict=True)]
    # Each process takes every second row, so that a batch of both has the rows of a batch of eight.
    data = ms.dataset.NumpySlicesDataset(tuple(rows), shuffle=False, num_shards=get_group_size(), shard_id=get_rank())
    records = Records()
    Model(net, loss, optimizer).train(1, data.batch(4), records, dataset_sink_mode=False, verbose=0)
    return {"loss": records.column("loss")} | {f"w{i}": w.asnumpy() for i, w in enumerate(net.trainable_params())}


def synchronized_model(size: int = SIZE) -> Model:
    """Return a Model that normalizes by the joint batch; of one process, by its batch."""
    norm = nn.SyncBatchNorm(16, process_groups=[list(range(size))])
    net = nn.SequentialCell(nn.Dense(6, 16), norm, nn.Tanh(), nn.Dense(16, 3))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return Model(net, loss, nn.Momentum(net.trainable_params(), 0.05, 0.9))


def synchronized(rank: int) -> dict[str, Any]:
    model, records = synchronized_model(), Records()
    model.train(1, shard(batches(*[8] * 10), rank), records, verbose=0)
    values = [parameter.asnumpy() for parameter in model.predict_network.get_parameters()]
    return {f"w{place}": value for place, value in enumerate(values)} | {"loss": records.column("loss")}


def embedding_model() -> tuple[Model, list[Any]]:
    """Return a Model whose first gradient is sparse where a backend has such, and its batches."""
    draw = np.random.default_rng(5)
    x, y = draw.integers(0, 9, (6, 8, 4)).astype(np.int32), draw.integers(0, 3, (6, 8)).astype(np.int32)
    layers = keras.layers
    network = keras.Sequential(
        [keras.Input((4,), dtype="int32"), layers.Embedding(9, 5), layers.Flatten(), layers.Dense(3)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return Model(network, loss, keras.optimizers.SGD(0.1)), list(zip(x, y, strict=True))


def embedding(rank: int) -> dict[str, Any]:
    model, data = embedding_model()
    model.train(1, shard(data, rank), verbose=0)
    return {f"w{place}": value for place, value in enumerate(values_of(model.predict_network))}


def noise(rank: int) -> dict[str, Any]:
    result = []
    for _ in range(2):
        ms.set_seed(3)
        net = nn.Dropout(p=0.5)
        weight = ms.Parameter(np.ones(1, np.float32))

        class Kept(nn.Cell):
            def __init__(self) -> None:
                super().__init__()
                self.dropout, self.weight = net, weight

            def construct(self, x: Any) -> Any:
                return ops.reduce_sum(self.dropout(x) * self.weight, 1)

        step = nn.TrainOneStepCell(Kept(), nn.SGD([weight], 0.0)).set_train()
        result.append([step(Tensor(np.ones((1, 64), np.float32))).asnumpy() for _ in range(2)])
    return {"kept": result}


CHECKS = {
    "collectives": collectives,
    "settings": settings,
    "o0": o0,
    "o0 sink": functools.partial(o0, sink=True),
    "convolutions": lambda rank: trained(shard(images(*[8] * 50), rank), network=cnn),
    "every size": every_size,
    "half": half,
    "formats": lambda rank: {dtype: reduced(train_cell(1, dtype)) for dtype in ("float32", "float16")},
    "unequal rows": unequal_rows,
    "accumulated": lambda rank: trained(shard(batches(4, 4, 8, 8), rank), accumulate_steps=3),
    "scales": scales,
    **{f"weights in half {storage}": functools.partial(weights_in_half, storage) for storage in STORAGES},
    **{
        f"skips {feed} {kind}": functools.partial(
            skips, left_out=kind == "control", sink=feed == "sink", eager=feed == "eager"
        )
        for feed in ("host", "sink", "eager") for kind in ("faulty", "control")
    },
    "skips sink first": functools.partial(skips, left_out=False, sink=True, faulty=0),
    "own train cell": own_train_cell,
    "by hand compiled": functools.partial(by_hand, compiled=True),
    "by hand eager": functools.partial(by_hand, compiled=False),
    "of cells": of_cells,
    "synchronized": synchronized,
    "embedding": embedding,
    "noise": noise,
    "stopped": stopped,
    "other rates": other_rates,
    "interrupted": interrupted,
}

if __name__ == "__main__":
    warnings.filterwarnings("ignore", "Model: in epoch .* steps were skipped although")
    join(int(sys.argv[1]), sys.argv[2])
    main(int(sys.argv[1]), FOLDER)
