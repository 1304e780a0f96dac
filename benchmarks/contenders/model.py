"""mixtrain's `Model` on a Keras network, or on a channels-first Cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mixtrain
from benchmarks.contender import Contender, Round
from benchmarks.contenders.feed import batches
from benchmarks.contenders.ours import trained
from benchmarks.networks import in_cells, in_keras
from benchmarks.workloads import Workload
from mixtrain import nn


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build network and data; return a function that creates the `Model`."""
    cells = contender.kind == "mixtrain cell"
    data = batches(workload, steps, channels_first=cells)
    mixtrain.set_seed(0)
    network = in_cells.network(nn, workload) if cells else in_keras.network(workload)

    def prepare() -> Round:
        if cells:
            loss: Any = nn.SoftmaxCrossEntropyWithLogits(reduction="mean")
            optimizer: Any = nn.Momentum(network.trainable_params(), 0.01, 0.9)
        else:
            loss, optimizer = in_keras.loss(), in_keras.optimizer()
        return trained(contender, network, loss, optimizer, data)

    return prepare
