"""Loss scales over steps with planted overflows, under a Fixed and a Dynamic manager, as a callback sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import keras
import numpy as np

from mixtrain import Callback, DynamicLossScaleManager, FixedLossScaleManager, Model

BATCH, WIDTH = 4, 8
FIRST, FACTOR, WINDOW = 2.0**12, 2, 40
SCALES: Final = {
    "fixed": lambda: FixedLossScaleManager(1024.0),
    "dynamic": lambda: DynamicLossScaleManager(FIRST, FACTOR, WINDOW),
}


def answer(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the traces of each manager and feed, which steps were planted, and the numbers of the dynamic rule.

    Args:
        told: "steps", how many.
    """
    count = int(told["steps"])
    traces = {
        f"{manager}, {'sink' if sink else 'host'}": trace(manager, count, sink=sink)
        for manager in SCALES
        for sink in (False, True)
    }
    rule = {"first": FIRST, "factor": FACTOR, "window": WINDOW}
    return {"planted": planted(count).tolist(), "rule": rule, "traces": traces}


def planted(count: int) -> np.ndarray:
    """Return which of some steps overflow: one in eighty, and a row of twelve."""
    bad = np.random.default_rng(5).random(count) < 0.0125
    bad[count // 3:count // 3 + 12] = True
    return bad


class Watcher(Callback):
    """A user's callback: it reads scale and overflow after every step, and does not say that it only observes."""

    def __init__(self) -> None:
        super().__init__()
        self.scales: list[float] = []
        self.overflows: list[bool] = []

    def on_train_step_end(self, run_context: Any) -> None:
        """Read the records of the steps since the last call."""
        records = run_context.original_args().step_results
        self.scales += records.loss_scale.tolist()
        self.overflows += records.overflow.tolist()


def trace(manager: str, count: int, *, sink: bool) -> dict[str, Any]:
    """Return scale and overflow of each step of a training in float16.

    Args:
        manager: Key of `SCALES`.
        count: Number of steps.
        sink: Whether the steps run in compiled groups.
    """
    keras.utils.set_random_seed(0)
    network = keras.Sequential([keras.Input((WIDTH,)), keras.layers.Dense(WIDTH, "relu"), keras.layers.Dense(1)])
    model = Model(
        network, keras.losses.MeanSquaredError(), keras.optimizers.SGD(1e-3), amp_level="O2",
        cast_model_type="float16", loss_scale_manager=SCALES[manager](),
    )
    watcher = Watcher()
    model.train(1, batches(planted(count)), callbacks=watcher, dataset_sink_mode=sink, verbose=0)
    return {"scales": watcher.scales, "overflows": watcher.overflows}


def batches(bad: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a small batch for each step, with an infinite value where it shall overflow."""
    random = np.random.default_rng(6)
    x = 0.01 * random.standard_normal((len(bad), BATCH, WIDTH), np.float32)
    x[bad, 0, 0] = np.inf
    y = np.zeros((len(bad), BATCH, 1), np.float32)
    return list(zip(x, y, strict=True))
