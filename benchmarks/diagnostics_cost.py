"""What diagnostics cost: epochs of LeNet-5 that are watched and that are not, timed in turn.

python -m benchmarks.diagnostics_cost
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any, Final

import keras
import numpy as np

from benchmarks.measure import Series, interleaved
from benchmarks.networks.in_cells import lenet
from benchmarks.surroundings import load_average, surroundings
from benchmarks.workloads import LENET
from benchmarks.written import write_json
from mixtrain import (
    DynamicLossScaleManager, FixedLossScaleManager, Model, OverflowMonitor, RangeMonitor, nn, set_seed,
)
from mixtrain.dataset import NumpySlicesDataset
from mixtrain.loss_scale.manager import LossScaleManager

STEPS: Final = 200
_BATCH: Final = 32
# Where some steps are to overflow, the scale doubles after so many: at its edge, one step in so many overflows.
_WINDOW: Final = 50
# No gradient of this network overflows at it.
_SAFE: Final = 64


def _data(batches: int = STEPS) -> Any:
    """Return an epoch of batches; fewer than its steps are repeated."""
    draw = np.random.default_rng(0)
    images = draw.standard_normal((batches * _BATCH, 1, 32, 32)).astype(np.float32)
    labels = draw.integers(0, 10, len(images)).astype(np.int32)
    columns = tuple(np.tile(one, (STEPS // batches,) + (1,) * (one.ndim - 1)) for one in (images, labels))
    return NumpySlicesDataset(columns, shuffle=False).batch(_BATCH)


def _model(manager: LossScaleManager) -> Model:
    set_seed(0)
    network = lenet(nn, LENET)
    return Model(
        network, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
        nn.Momentum(network.trainable_params(), 0.01, 0.9), amp_level="O2", loss_scale_manager=manager,
    )


def _epoch(
    make: Callable[[], list[Any]], *, sink: bool, manager: LossScaleManager, batches: int = STEPS
) -> Callable[[], Any]:
    """Return what trains an epoch with some callbacks."""
    model, data = _model(manager), _data(batches)
    return lambda: model.train(1, data, callbacks=make(), dataset_sink_mode=sink, verbose=0)


def _edge() -> float:
    """Return the smallest power of two at which the first batch overflows."""
    monitor = OverflowMonitor(verbose=False)
    model = _model(FixedLossScaleManager(2**30, drop_overflow_update=True))
    model.train(1, _data(1).take(1), callbacks=monitor, dataset_sink_mode=False, verbose=0)
    return 2 * monitor.records[0].finding.scale


def _safe() -> LossScaleManager:
    return DynamicLossScaleManager(_SAFE)


def _growing() -> LossScaleManager:
    return DynamicLossScaleManager(2**24, scale_window=_WINDOW)


def pairs() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Return pairs of epochs by name: watched, and not."""

    def nothing() -> list[Any]:
        return []

    def monitor() -> list[Any]:
        return [OverflowMonitor(verbose=False)]

    def ranges() -> list[Any]:
        return [RangeMonitor(every=50)]

    found = {}
    edge = _edge()
    for feed in ("host", "sink"):
        sink = feed == "sink"
        plain = _epoch(nothing, sink=sink, manager=_safe())
        found[f"OverflowMonitor, good steps, {feed}"] = _epoch(monitor, sink=sink, manager=_safe()), plain
        found[f"RangeMonitor, every 50 steps, {feed}"] = _epoch(ranges, sink=sink, manager=_safe()), plain
        found[f"OverflowMonitor, 1 of {_WINDOW} steps overflows, {feed}"] = (
            _epoch(monitor, sink=sink, manager=_growing()), _epoch(nothing, sink=sink, manager=_growing()),
        )
        # Its weights stand still, so that the same batch overflows in each step, and would not at half the scale.
        fixed = FixedLossScaleManager(edge, drop_overflow_update=True)
        found[f"OverflowMonitor, a step that overflows, {feed}"] = (
            _epoch(monitor, sink=sink, manager=fixed, batches=1), plain,
        )
    return found


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--print-only", action="store_true")
    options = parser.parse_args()
    before, rows = load_average(), []
    for name, (watched, plain) in pairs().items():
        runs: dict[str, Callable[[], float]] = {"watched": _timed(watched), "plain": _timed(plain)}
        for run in [*runs.values()] * 2:
            run()
        gc.collect()
        found = interleaved(runs, rounds=options.rounds)
        ratios = Series(name, "ratio", tuple(a / b for a, b in zip(found["watched"], found["plain"], strict=True)))
        plain_step = Series(name, "ms", tuple(found["plain"])).quartiles[1] / STEPS * 1e3
        low, median, high = ratios.quartiles
        rows.append({"what": name, "ratio": median, "low": low, "high": high, "plain_ms_a_step": plain_step})
        print(f"{name}: {median:.3f} ({low:.3f} to {high:.3f}), a step takes {plain_step:.2f} ms", flush=True)
    record = {
        "set": f"diagnostics_{keras.backend.backend()}", "surroundings": surroundings(), "rounds": options.rounds,
        "steps": STEPS, "load_average": {"before": before, "after": load_average()}, "rows": rows,
    }
    if not options.print_only:
        write_json(record)


def _timed(call: Callable[[], Any]) -> Callable[[], float]:
    def run() -> float:
        started = time.perf_counter()
        call()
        return time.perf_counter() - started

    return run


if __name__ == "__main__":
    main()
