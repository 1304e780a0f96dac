"""mixtrain's `Model` on a Keras network, or on a channels-first Cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mixtrain
from benchmarks.contender import Contender, Round
from benchmarks.contenders.feed import batches
from benchmarks.networks import in_cells, in_keras
from benchmarks.workloads import Workload
from mixtrain import Callback, DynamicLossScaleManager, FixedLossScaleManager, Model, nn

SCALING: dict[str, Callable[[], dict[str, Any]]] = {
    "level": dict,
    "none": lambda: {"loss_scale_manager": None},
    "fixed": lambda: {"loss_scale_manager": FixedLossScaleManager(1024.0)},
    "dynamic": lambda: {"loss_scale_manager": DynamicLossScaleManager(2**10)},
}


class Counter(Callback):
    """A user's callback: it looks at every step, and does not say that it only observes."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    def on_train_step_end(self, run_context: Any) -> None:
        """Count a step."""
        self.steps += 1


def made(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Return what makes the `Model`."""
    cells = contender.kind == "mixtrain cell"
    data = batches(workload, steps, channels_first=cells)
    mixtrain.set_seed(0)
    network = in_cells.network(nn, workload) if cells else in_keras.network(workload)
    callbacks = [Counter()] if contender.callback else None

    def prepare() -> Round:
        if cells:
            loss: Any = nn.SoftmaxCrossEntropyWithLogits(reduction="mean")
            optimizer: Any = nn.Momentum(network.trainable_params(), 0.01, 0.9)
        else:
            loss, optimizer = in_keras.loss(), in_keras.optimizer()
        model = Model(network, loss, optimizer, **_precision(contender), **SCALING[contender.scaling]())
        return lambda: model.train(1, data, callbacks=callbacks, dataset_sink_mode=contender.sink, verbose=0)

    return prepare


def _precision(contender: Contender) -> dict[str, Any]:
    if contender.dtype == "float32":
        return {"amp_level": "O0"}
    return {"amp_level": "O2", "cast_model_type": contender.dtype}
