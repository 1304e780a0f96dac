"""Record loss scales over steps with planted overflows, under a fixed and a dynamic manager."""

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


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the trace of each manager and feed, the planted overflows, and the settings of the dynamic rule.

    Args:
        request: "steps": the number of steps.
    """
    count = int(request["steps"])
    traces = {
        f"{manager}, {'sink' if sink else 'host'}": trace(manager, count, sink=sink)
        for manager in SCALES
        for sink in (False, True)
    }
    rule = {"first": FIRST, "factor": FACTOR, "window": WINDOW}
    return {"planted": planted(count).tolist(), "rule": rule, "traces": traces}


def planted(count: int) -> np.ndarray:
    """Return which steps overflow: one in eighty, and twelve consecutive ones."""
    bad = np.random.default_rng(5).random(count) < 0.0125
    bad[count // 3:count // 3 + 12] = True
    return bad


class Watcher(Callback):
    """Record scale and overflow after every step, without setting `observes_only`."""

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
    """Train in float16 and return the scale and overflow of each step.

    Args:
        manager: Key of `SCALES`.
        count: Number of steps.
        sink: Whether to use the sink feed.
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
    """Return a small batch for each step, with an infinite value where it must overflow."""
    random = np.random.default_rng(6)
    x = 0.01 * random.standard_normal((len(bad), BATCH, WIDTH), np.float32)
    x[bad, 0, 0] = np.inf
    y = np.zeros((len(bad), BATCH, 1), np.float32)
    return list(zip(x, y, strict=True))
