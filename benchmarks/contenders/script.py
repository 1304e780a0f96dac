"""A MindSpore training script, on MindSpore or, with the import swapped, on mixtrain."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks.contender import Contender, Round
from benchmarks.networks.in_cells import network as network_of
from benchmarks.workloads import Workload, arrays


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build network and data; return a function that creates the `Model`."""
    name = "mindspore" if contender.kind == "mindspore" else "mixtrain"
    ms: Any = importlib.import_module(name)
    nn, dataset = (importlib.import_module(f"{name}.{part}") for part in ("nn", "dataset"))
    ms.set_seed(0)
    ms.set_context(mode=ms.GRAPH_MODE)
    x, y = arrays(workload, steps, channels_first=True)
    rows = (x.reshape(-1, *x.shape[2:]), y.reshape(-1, y.shape[-1]))
    data = dataset.NumpySlicesDataset(rows, ["data", "label"], shuffle=False).batch(workload.batch, drop_remainder=True)
    network = network_of(nn, workload)
    silent = {} if name == "mindspore" else {"verbose": 0}  # MindSpore prints no progress of its own.

    def prepare() -> Round:
        loss = nn.SoftmaxCrossEntropyWithLogits(reduction="mean")
        optimizer = nn.Momentum(network.trainable_params(), 0.01, 0.9)
        model = ms.Model(network, loss, optimizer)
        return lambda: model.train(1, data, dataset_sink_mode=False, **silent)

    return prepare
